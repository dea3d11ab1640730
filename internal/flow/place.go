package flow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"lockkeeper"
)

// fault is something wrong at a place of a document.
type fault struct {
	place []string // names of members and numbers of elements, from the top
	err   error
}

// faultAt says what is wrong with the value at a place.
func faultAt(err error, place ...any) *fault {
	f := &fault{err: err}
	for _, part := range place {
		f.place = append(f.place, fmt.Sprint(part))
	}
	return f
}

// wrong is an error about a document that is no path and no lock.
func wrong(value, reason, next string) error {
	return &lockkeeper.InputError{Field: "value", Value: value, Reason: reason, Next: next}
}

// PlaceError says where in a text something is wrong.
type PlaceError struct {
	File         string
	Line, Column int    // from 1; 0: not known
	Member       string // batches/0/write_targets/1; empty: the whole
	Err          error
}

func (e *PlaceError) Error() string {
	s := e.File
	if e.Line > 0 {
		s += fmt.Sprintf(":%d:%d", e.Line, e.Column)
	}
	if e.Member != "" {
		s += ": " + e.Member
	}
	return s + ": " + e.Err.Error()
}

// Unwrap is what is wrong there.
func (e *PlaceError) Unwrap() error { return e.Err }

// Code implements the classing of lockkeeper.CodeOf.
func (e *PlaceError) Code() lockkeeper.Code {
	var over *lockkeeper.OverLockError
	if errors.As(e.Err, &over) {
		return over.Code()
	}
	return lockkeeper.CodeInput
}

// in names the fault of something that was never a text.
func (f *fault) in(what string) error {
	return &PlaceError{File: what, Member: strings.Join(f.place, "/"), Err: f.err}
}

// placed names the line and column of a fault in a JSON text.
func (f *fault) placed(file string, text []byte) error {
	e := &PlaceError{File: file, Member: strings.Join(f.place, "/"), Err: f.err}
	e.Line, e.Column = position(text, find(text, f.place))
	return e
}

// position is the line and the column, in bytes, of an offset, both from 1.
func position(text []byte, offset int64) (line, column int) {
	before := text[:min(max(offset, 0), int64(len(text)))]
	return 1 + bytes.Count(before, []byte{'\n'}), len(before) - bytes.LastIndexByte(before, '\n')
}

// find is the offset at which the value at a place of a JSON text begins.
func find(text []byte, place []string) int64 {
	d := json.NewDecoder(bytes.NewReader(text))
	for _, want := range place {
		open, err := d.Token()
		if err != nil {
			return 0
		}
		for n := 0; d.More(); n++ {
			name := strconv.Itoa(n)
			if open == json.Delim('{') {
				key, err := d.Token()
				if err != nil {
					return 0
				}
				name, _ = key.(string)
			}
			if name == want {
				break
			}
			var other json.RawMessage
			if d.Decode(&other) != nil {
				return 0
			}
		}
	}
	at := d.InputOffset()
	return at + int64(len(text[at:])-len(bytes.TrimLeft(text[at:], " \t\r\n,:")))
}

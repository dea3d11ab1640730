package flow

import (
	"errors"
	"fmt"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/jsonplace"
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
	e.Line, e.Column = jsonplace.Position(text, jsonplace.Find(text, f.place))
	return e
}

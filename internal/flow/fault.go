package flow

import (
	"errors"
	"fmt"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/encoding/jsonplace"
)

// fault is something wrong at a place of a document.
type fault struct {
	at  []string // names of members and numbers of elements, from the top
	err error
}

// faultAt says what is wrong with the value at a place.
func faultAt(err error, place ...any) *fault {
	f := &fault{err: err}
	for _, part := range place {
		f.at = append(f.at, fmt.Sprint(part))
	}
	return f
}

// wrong is an error about a document that is no path and no lock.
func wrong(value, reason, next string) error {
	return &lockkeeper.InputError{Field: "value", Value: value, Reason: reason, Next: next}
}

// DocumentError says where in a text something is wrong.
type DocumentError struct {
	File         string
	Line, Column int    // from 1; 0: not known
	Member       string // batches/0/write_targets/1; empty: the whole
	Err          error
}

func (e *DocumentError) Error() string {
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
func (e *DocumentError) Unwrap() error { return e.Err }

// Code implements lockkeeper.CodeOf.
func (e *DocumentError) Code() lockkeeper.Code {
	var over *lockkeeper.OverLockError
	if errors.As(e.Err, &over) {
		return over.Code()
	}
	return lockkeeper.CodeInput
}

// in names the fault of something that was never a text.
func (f *fault) in(what string) error {
	return &DocumentError{File: what, Member: strings.Join(f.at, "/"), Err: f.err}
}

// placed names the line and column of a fault in a JSON text.
func (f *fault) inText(file string, text []byte) error {
	e := &DocumentError{File: file, Member: strings.Join(f.at, "/"), Err: f.err}
	e.Line, e.Column = jsonplace.Position(text, jsonplace.Find(text, f.at))
	return e
}

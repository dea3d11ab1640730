package flow

import (
	"errors"
	"fmt"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/encoding/jsonplace"
)

// A fault is a problem at a position in a document.
type fault struct {
	at  []string // names of members and numbers of elements, from the top
	err error
}

// faultAt returns a fault at a position.
func faultAt(err error, place ...any) *fault {
	f := &fault{err: err}
	for _, part := range place {
		f.at = append(f.at, fmt.Sprint(part))
	}
	return f
}

// wrong returns an error about a value of a document.
func wrong(value, reason, next string) error {
	return &lockkeeper.InputError{Field: "value", Value: value, Reason: reason, Next: next}
}

// A DocumentError reports a problem at a position in a file.
type DocumentError struct {
	File         string
	Line, Column int    // start at 1; 0: unknown
	Member       string // such as batches/0/write_targets/1; empty: the whole document
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

// Unwrap returns the problem.
func (e *DocumentError) Unwrap() error { return e.Err }

// Code implements lockkeeper.CodeOf.
func (e *DocumentError) Code() lockkeeper.Code {
	var over *lockkeeper.OverLockError
	if errors.As(e.Err, &over) {
		return over.Code()
	}
	return lockkeeper.CodeInput
}

// in returns the fault of a value that was not read from a file.
func (f *fault) in(what string) error {
	return &DocumentError{File: what, Member: strings.Join(f.at, "/"), Err: f.err}
}

// inText returns the fault with its line and column in a JSON text.
func (f *fault) inText(file string, text []byte) error {
	e := &DocumentError{File: file, Member: strings.Join(f.at, "/"), Err: f.err}
	e.Line, e.Column = jsonplace.Position(text, jsonplace.Find(text, f.at))
	return e
}

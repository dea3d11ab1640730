package sidecar

import (
	"fmt"
	"time"

	"lockkeeper"
)

// A MalformedError reports that a file is truncated, damaged, edited without its hash, or of
// another form. The file counts as missing, and only Write, WriteText and Keep overwrite it.
type MalformedError struct {
	Path   string // relative to the sidecar directory
	Line   int    // 0 if unknown
	Reason string
	Next   string
}

func (e *MalformedError) Error() string {
	s := e.Path
	if e.Line > 0 {
		s += fmt.Sprintf(", line %d", e.Line)
	}
	return lockkeeper.JoinNext(s+": "+e.Reason, e.Next)
}

// NextStep implements lockkeeper.NextStep.
func (e *MalformedError) NextStep() string { return e.Next }

// Code implements lockkeeper.CodeOf.
func (e *MalformedError) Code() lockkeeper.Code { return lockkeeper.CodeInput }

// A ChangedError reports that a document changed since the caller read it.
type ChangedError struct {
	Path string
	Was  string // the hash at that time; "": the document was missing
	Is   string // the present hash; "": the document is missing or malformed

	By string    // the author of the change, if known
	At time.Time // the time of the change

	Malformed error // why the document cannot be read; nil if it can
}

func (e *ChangedError) Error() string {
	s := e.Path + " changed since it was read: "
	switch {
	case e.Malformed != nil:
		return s + "it cannot be read: " + e.Malformed.Error()
	case e.Is == "":
		return lockkeeper.JoinNext(s+"it was removed", e.NextStep())
	case e.Was == "":
		s += "it was created"
	default:
		s += "its content differs"
	}
	if e.By != "" {
		s += ", by " + e.By
	}
	if !e.At.IsZero() {
		s += " at " + e.At.UTC().Format(time.RFC3339)
	}
	return lockkeeper.JoinNext(s, e.NextStep())
}

// NextStep implements lockkeeper.NextStep.
func (e *ChangedError) NextStep() string { return "read it again, then decide" }

func (e *ChangedError) Unwrap() error { return e.Malformed }

// Code implements lockkeeper.CodeOf.
func (e *ChangedError) Code() lockkeeper.Code { return lockkeeper.CodeRefused }

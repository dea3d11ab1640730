package sidecar

import (
	"fmt"
	"time"

	"lockkeeper"
)

// MalformedError says that a file is not what it ought to be: cut off, damaged, changed
// without its hash, or of another form. It counts as not there, and is not overwritten
// unless somebody asks for that.
type MalformedError struct {
	Path   string // relative to the sidecar directory
	Line   int    // 0: not known
	Reason string
	Next   string
}

func (e *MalformedError) Error() string {
	s := e.Path
	if e.Line > 0 {
		s += fmt.Sprintf(", line %d", e.Line)
	}
	s += ": " + e.Reason
	if e.Next != "" {
		s += "; next: " + e.Next
	}
	return s
}

// Code implements lockkeeper.CodeOf.
func (e *MalformedError) Code() lockkeeper.Code { return lockkeeper.CodeInput }

// ChangedError says that a document is no longer what the caller has read.
type ChangedError struct {
	Path string
	Was  string // its hash then; "": it was not there
	Is   string // its hash now; "": it is not there, or malformed

	By string    // who wrote it since, where that is known
	At time.Time // and when

	Malformed error // why it cannot be read, if it cannot
}

func (e *ChangedError) Error() string {
	s := e.Path + " changed since it was read: "
	switch {
	case e.Malformed != nil:
		return s + "it cannot be read: " + e.Malformed.Error()
	case e.Is == "":
		return s + "it is gone; next: read again and decide anew"
	case e.Was == "":
		s += "it was not there, and now is"
	default:
		s += "its content is another"
	}
	if e.By != "" {
		s += ", by " + e.By
	}
	if !e.At.IsZero() {
		s += " at " + e.At.UTC().Format(time.RFC3339)
	}
	return s + "; next: read it again and decide anew"
}

func (e *ChangedError) Unwrap() error { return e.Malformed }

// Code implements lockkeeper.CodeOf.
func (e *ChangedError) Code() lockkeeper.Code { return lockkeeper.CodeRefused }

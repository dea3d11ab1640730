package resource

import (
	"fmt"
	"slices"
	"strings"

	"lockkeeper"
)

// UnclearError refuses an operation of which something is unclear. No lock was taken.
type UnclearError struct {
	Operation string
	Unclear   []string // what; never empty
	Next      string
}

func (e *UnclearError) Error() string {
	s := fmt.Sprintf("operation %q: unclear %s; no lock was taken", e.Operation, strings.Join(e.Unclear, ", and "))
	if e.Next != "" {
		s += "; next: " + e.Next
	}
	return s
}

// Code implements the classing of lockkeeper.CodeOf.
func (e *UnclearError) Code() lockkeeper.Code { return lockkeeper.CodeInput }

// add names one more thing that is unclear. The step that helps with the first of them
// is the one to take.
func (e *UnclearError) add(what, next string) {
	if !slices.Contains(e.Unclear, what) {
		e.Unclear = append(e.Unclear, what)
	}
	if e.Next == "" {
		e.Next = next
	}
}

package resource

import (
	"fmt"
	"slices"
	"strings"

	"lockkeeper"
)

// An UnclearError refuses an incomplete or ambiguous operation. No lock was acquired.
type UnclearError struct {
	Operation string
	Unclear   []string // never empty
	Next      string
}

func (e *UnclearError) Error() string {
	return lockkeeper.JoinNext(fmt.Sprintf("operation %q: unclear %s; no lock was acquired", e.Operation, strings.Join(e.Unclear, ", and ")), e.Next)
}

// NextStep implements lockkeeper.NextStep.
func (e *UnclearError) NextStep() string { return e.Next }

// Code implements lockkeeper.CodeOf.
func (e *UnclearError) Code() lockkeeper.Code { return lockkeeper.CodeInput }

// add adds something that is unclear. The next step is that of the first one.
func (e *UnclearError) add(what, next string) {
	if !slices.Contains(e.Unclear, what) {
		e.Unclear = append(e.Unclear, what)
	}
	if e.Next == "" {
		e.Next = next
	}
}

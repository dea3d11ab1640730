package cli

import (
	"errors"
	"syscall"

	"lockkeeper"
)

// The exit codes. A command that lock exec runs passes its own code through.
const (
	exitOK        = 0
	exitFailed    = 1   // anything else went wrong
	exitUsage     = 2   // what was typed is wrong
	exitBlocked   = 3   // somebody else holds it, or waits for it earlier
	exitTimeout   = 4   // waited, and still blocked
	exitViolation = 5   // refused by the gate
	exitOverLock  = 6   // a directory asked for writing
	exitBudget    = 7   // what a run may spend is spent
	exitLost      = 125 // the grant was lost while the command ran, or could not be given back
)

var exitCodes = map[lockkeeper.Code]int{
	lockkeeper.CodeInput:     exitUsage,
	lockkeeper.CodeBlocked:   exitBlocked,
	lockkeeper.CodeTimeout:   exitTimeout,
	lockkeeper.CodeViolation: exitViolation,
	lockkeeper.CodeOverLock:  exitOverLock,
	lockkeeper.CodeBudget:    exitBudget,
	lockkeeper.CodeNotHeld:   exitFailed,
	lockkeeper.CodeRefused:   exitFailed,
	lockkeeper.CodeStore:     exitFailed,
	lockkeeper.CodeFailed:    exitFailed,
}

// codedError ends the program with a code of its own. Without an error there is
// nothing to say: what ran has said it.
type codedError struct {
	exit   int
	err    error
	signal syscall.Signal // to die of, once all is cleaned up; 0: none
}

func (e *codedError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *codedError) Unwrap() error { return e.err }

func exitCode(err error) int {
	var coded *codedError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &coded):
		return coded.exit
	}
	return exitCodes[lockkeeper.CodeOf(err)]
}

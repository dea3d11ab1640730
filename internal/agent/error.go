package agent

import (
	"fmt"
	"time"

	"lockkeeper"
)

// An Origin describes the call that an error came from.
type Origin struct {
	Agent   string
	Session string // can be used to resume the call; empty if there was no session yet
	Output  string // the file with everything the agent printed
	Log     string // the file with everything it printed to standard error
}

// message builds the text of an error: what happened, where to look, what to do next.
func (o Origin) message(what, next string) string {
	s := o.Agent + ": " + what
	if o.Output != "" {
		s += "; its output: " + o.Output
	}
	return lockkeeper.JoinNext(s, next)
}

// retry returns the advice to retry, in the same session if there is one.
func (o Origin) retry() string {
	if o.Session == "" {
		return "lockkeeper run --retry"
	}
	return "lockkeeper run --retry, or resume its session " + o.Session
}

// A TransientError reports a failure that passes by itself.
type TransientError struct {
	Origin
	Status     int           // of the API; 0 if there was no response
	Reason     string        // in the agent's words
	RetryAfter time.Duration // requested by the API; 0 if it requested none
}

func (e *TransientError) Error() string {
	what := "temporary failure"
	if e.Status != 0 {
		what += fmt.Sprintf(" (HTTP %d)", e.Status)
	}
	return e.message(what+": "+e.Reason, e.NextStep())
}

// NextStep implements lockkeeper.NextStep.
func (e *TransientError) NextStep() string {
	if e.RetryAfter > 0 {
		return "retry in " + e.RetryAfter.Round(time.Second).String()
	}
	return "retry later"
}

// A LimitError reports that the account has reached a usage limit. Every call fails
// until the limit is reset, so no call should start.
type LimitError struct {
	Origin
	Reason  string
	ResetAt time.Time // zero if unknown
}

func (e *LimitError) Error() string {
	return e.message("the account has reached a limit: "+e.Reason, e.NextStep())
}

// NextStep implements lockkeeper.NextStep.
func (e *LimitError) NextStep() string {
	if e.ResetAt.IsZero() {
		return "check the plan and the credit of the account, then resume"
	}
	return "wait until " + e.ResetAt.UTC().Format(time.RFC3339)
}

// A RefusedError reports that the call is invalid: retrying it does not help.
type RefusedError struct {
	Origin
	Reason string
	Next   string
	Err    error // the cause; nil if Reason is in the agent's own words
}

func (e *RefusedError) Error() string { return e.message("refused: "+e.Reason, e.Next) }

func (e *RefusedError) Unwrap() error { return e.Err }

// NextStep implements lockkeeper.NextStep.
func (e *RefusedError) NextStep() string { return e.Next }

// An UnfinishedError reports that the agent stopped by itself before it was done.
type UnfinishedError struct {
	Origin
	Reason string
	Next   string
}

func (e *UnfinishedError) Error() string { return e.message("not finished: "+e.Reason, e.Next) }

// NextStep implements lockkeeper.NextStep.
func (e *UnfinishedError) NextStep() string { return e.Next }

// A CrashedError reports that the agent's process ended without a result.
type CrashedError struct {
	Origin
	Exit Exit
	Last string // the last line it printed
}

func (e *CrashedError) Error() string {
	what := "crashed: " + e.Exit.String() + ", without a result"
	if e.Last != "" {
		what += fmt.Sprintf(", last line %q", e.Last)
	}
	return e.message(what, e.NextStep())
}

// NextStep implements lockkeeper.NextStep.
func (e *CrashedError) NextStep() string { return e.retry() }

// A TimedOutError reports that a call took longer than its time limit.
type TimedOutError struct {
	Origin
	After time.Duration
}

func (e *TimedOutError) Error() string {
	return e.message(fmt.Sprintf("timed out after %s", e.After), e.NextStep())
}

// NextStep implements lockkeeper.NextStep.
func (e *TimedOutError) NextStep() string { return e.retry() + ", or raise its time limit" }

// A StalledError reports that a call was ended because the agent had printed nothing for
// a long time.
type StalledError struct {
	Origin
	Silent time.Duration
	Doing  string // its last activity
	Err    error  // the cause of the end
}

func (e *StalledError) Error() string {
	what := fmt.Sprintf("ended after %s without output", e.Silent.Round(time.Second))
	if e.Doing != "" {
		what += ", since " + e.Doing
	}
	return e.message(what+": "+e.Err.Error(), e.NextStep())
}

func (e *StalledError) Unwrap() error { return e.Err }

// NextStep implements lockkeeper.NextStep.
func (e *StalledError) NextStep() string { return e.retry() }

// A GarbageError reports that an agent exited successfully but its output does not follow its
// protocol.
type GarbageError struct {
	Origin
	Reason string
	Sample string // the first output that could not be parsed
}

func (e *GarbageError) Error() string {
	what := "unexpected output: " + e.Reason
	if e.Sample != "" {
		what += fmt.Sprintf(", for example %q", e.Sample)
	}
	return e.message(what, e.NextStep())
}

// NextStep implements lockkeeper.NextStep.
func (e *GarbageError) NextStep() string {
	return "check that the program is " + e.Agent + ", in a supported version"
}

// An EmptyError reports that an agent exited successfully without any output.
type EmptyError struct{ Origin }

func (e *EmptyError) Error() string { return e.message("ended without output", e.NextStep()) }

// NextStep implements lockkeeper.NextStep.
func (e *EmptyError) NextStep() string {
	return "check that the program is " + e.Agent + ", then retry"
}

// An OutputError reports that a structured answer does not match its schema. The work
// counts as not done.
type OutputError struct {
	Origin
	Line, Column int    // position in the answer, starting at 1; 0 if unknown
	Pointer      string // the location in the document; empty for the whole
	Reason       string
}

func (e *OutputError) Error() string {
	what := "its answer does not match the schema: "
	if e.Line > 0 {
		what += fmt.Sprintf("line %d, column %d: ", e.Line, e.Column)
	}
	if e.Pointer != "" {
		what += "at " + e.Pointer + ": "
	}
	return e.message(what+e.Reason, e.NextStep())
}

// NextStep implements lockkeeper.NextStep.
func (e *OutputError) NextStep() string { return e.retry() }

package agent

import (
	"fmt"
	"time"
)

// Origin is the call that an error came from.
type Origin struct {
	Agent   string
	Session string // with which it can be resumed; empty: it had none yet
	Output  string // the file with all that it said
	Log     string // the file with what it said on its standard error
}

// say builds a message: what happened, where to look, what to do next.
func (o Origin) say(what, next string) string {
	s := o.Agent + ": " + what
	if o.Output != "" {
		s += "; its output: " + o.Output
	}
	if next == "" {
		return s
	}
	return s + "; next: " + next
}

// goOn is the advice to try again, in the same session where there is one.
func (o Origin) goOn() string {
	if o.Session == "" {
		return "lockkeeper run --retry"
	}
	return "lockkeeper run --retry, or go on with its session " + o.Session
}

// TransientError says that a call failed for a reason that passes by itself.
type TransientError struct {
	Origin
	Status     int           // of the API; 0: none came
	Reason     string        // in the agent's words
	RetryAfter time.Duration // what the API asked for; 0: it did not
}

func (e *TransientError) Error() string {
	what := "a passing failure"
	if e.Status != 0 {
		what += fmt.Sprintf(" (HTTP %d)", e.Status)
	}
	next := "try again in a while"
	if e.RetryAfter > 0 {
		next = "try again in " + e.RetryAfter.Round(time.Second).String()
	}
	return e.say(what+": "+e.Reason, next)
}

// LimitError says that the account has used up what it may use. Until that changes every
// call fails, so nothing should be started.
type LimitError struct {
	Origin
	Reason  string
	ResetAt time.Time // zero: unknown
}

func (e *LimitError) Error() string {
	if e.ResetAt.IsZero() {
		return e.say("a limit of the account is reached: "+e.Reason, "look at the plan and the credit of the account, then resume")
	}
	return e.say("a limit of the account is reached: "+e.Reason, "wait until "+e.ResetAt.UTC().Format(time.RFC3339))
}

// RefusedError says that the call cannot work as it was made, however often it is tried.
type RefusedError struct {
	Origin
	Reason string
	Next   string
	Err    error // what it came from; nil: the agent's own words
}

func (e *RefusedError) Error() string { return e.say("refused: "+e.Reason, e.Next) }

func (e *RefusedError) Unwrap() error { return e.Err }

// UnfinishedError says that the agent stopped by itself before it was done.
type UnfinishedError struct {
	Origin
	Reason string
	Next   string
}

func (e *UnfinishedError) Error() string { return e.say("not finished: "+e.Reason, e.Next) }

// CrashedError says that the process of the agent ended without a result.
type CrashedError struct {
	Origin
	Exit Exit
	Last string // the last it said
}

func (e *CrashedError) Error() string {
	what := "crashed: " + e.Exit.String() + ", without a result"
	if e.Last != "" {
		what += fmt.Sprintf(", at last it said %q", e.Last)
	}
	return e.say(what, e.goOn())
}

// TimedOutError says that a call took longer than it might.
type TimedOutError struct {
	Origin
	After time.Duration
}

func (e *TimedOutError) Error() string {
	return e.say(fmt.Sprintf("ended after %s, the longest that a call may take", e.After), e.goOn()+", or permit it more time")
}

// StalledError says that a call was ended while the agent had said nothing for long.
type StalledError struct {
	Origin
	Silent time.Duration
	Doing  string // what it did last
	Err    error  // why it was ended
}

func (e *StalledError) Error() string {
	what := fmt.Sprintf("ended after a silence of %s", e.Silent.Round(time.Second))
	if e.Doing != "" {
		what += ", since " + e.Doing
	}
	return e.say(what+": "+e.Err.Error(), e.goOn())
}

func (e *StalledError) Unwrap() error { return e.Err }

// GarbageError says that an agent ended well and what it said is not its protocol.
type GarbageError struct {
	Origin
	Reason string
	Sample string // the first that was not understood
}

func (e *GarbageError) Error() string {
	what := "its output is not what this agent says: " + e.Reason
	if e.Sample != "" {
		what += fmt.Sprintf(", for example %q", e.Sample)
	}
	return e.say(what, "see whether the program is the right one, in a version that is known")
}

// EmptyError says that an agent ended well and said nothing.
type EmptyError struct{ Origin }

func (e *EmptyError) Error() string {
	return e.say("it ended without a word", "see whether the program is the right one, and run it again")
}

// OutputError says that a structured answer is not what was asked for. The work counts
// as not done.
type OutputError struct {
	Origin
	Line, Column int    // in the answer, from 1; 0: there is none
	Pointer      string // the place in the document; empty: all of it
	Reason       string
}

func (e *OutputError) Error() string {
	what := "its answer does not have the form that was asked for: "
	if e.Line > 0 {
		what += fmt.Sprintf("line %d, column %d: ", e.Line, e.Column)
	}
	if e.Pointer != "" {
		what += "at " + e.Pointer + ": "
	}
	return e.say(what+e.Reason, e.goOn())
}

package agent

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"lockkeeper"
)

// An Origin describes the call that an error came from.
type Origin struct {
	Agent   string
	Session string // can be used to resume the call; empty if there was no session yet
	Output  string // the file with everything the agent printed
}

// retry returns the advice to retry, in the same session if there is one.
func (o Origin) retry() string {
	if o.Session == "" {
		return "lockkeeper run --retry"
	}
	return "lockkeeper run --retry, or resume its session " + o.Session
}

// A Kind is the way in which a call failed. Its text begins the error.
type Kind string

// The kinds of failure.
const (
	Transient  Kind = "temporary failure"
	Limit      Kind = "the account has reached a limit" // every call fails until the limit is reset, so no call should start
	Refused    Kind = "refused"                         // the call is invalid: retrying it does not help
	Unfinished Kind = "not finished"                    // the agent stopped by itself before its work was done
	Crashed    Kind = "crashed"                         // the process ended without a result
	TimedOut   Kind = "timed out after"                 // the call took longer than its time limit
	Stalled    Kind = "ended after"                     // the call was ended because the agent was silent
	Garbage    Kind = "unexpected output"               // the agent exited successfully but did not follow its protocol
	Empty      Kind = "ended without output"            // the agent exited successfully and printed nothing
	Malformed  Kind = "its answer does not match the schema"
)

// An Error reports why a call has no usable result. An adapter returns one without an Origin, and
// without a Kind if the agent reports none.
type Error struct {
	Origin
	Kind       Kind
	Status     int           // HTTP status of the API; 0 if there was no response
	Reason     string        // in the agent's words if it gave a reason
	Sample     string        // the first output that could not be parsed
	Next       string        // empty: the usual advice for the kind
	RetryAfter time.Duration // the wait that the API asks for; 0 if it asks for none
	ResetAt    time.Time     // when a limit is reset; zero if unknown
	Err        error         // the cause; nil if Reason is in the agent's own words
}

func (e *Error) Error() string {
	s := e.Agent + ": " + string(e.Kind)
	if e.Kind == Transient && e.Status != 0 {
		s += fmt.Sprintf(" (HTTP %d)", e.Status)
	}
	switch {
	case e.Kind == TimedOut || e.Kind == Stalled:
		s += " " + e.Reason
	case e.Reason != "":
		s += ": " + e.Reason
	}
	if e.Sample != "" {
		s += fmt.Sprintf(", for example %q", e.Sample)
	}
	if e.Output != "" {
		s += "; its output: " + e.Output
	}
	return lockkeeper.JoinNext(s, e.NextStep())
}

func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of the *Error that an error wraps, or "" if it wraps none.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return ""
}

func (e *Error) NextStep() string {
	switch {
	case e.Next != "":
		return e.Next
	case e.Kind == Transient && e.RetryAfter > 0:
		return "retry in " + e.RetryAfter.Round(time.Second).String()
	case e.Kind == Transient:
		return "retry later"
	case e.Kind == Limit && !e.ResetAt.IsZero():
		return "wait until " + e.ResetAt.UTC().Format(time.RFC3339)
	case e.Kind == Limit:
		return "check the plan and the credit of the account, then resume"
	case e.Kind == Refused:
		return "check the agent's login, key and model, then retry"
	case e.Kind == TimedOut:
		return e.retry() + ", or raise its time limit"
	case e.Kind == Garbage:
		return "check that the program is " + e.Agent + ", in a supported version"
	case e.Kind == Empty:
		return "check that the program is " + e.Agent + ", then retry"
	}
	return e.retry()
}

// from returns a failure that an agent reported as an error of a call. A failure of an unknown
// kind becomes Unfinished, which is neither retried nor treated as a limit of the account.
func (e *Error) from(call Origin) *Error {
	full := *e
	full.Origin, full.Reason = call, cmp.Or(quote(e.Reason), "it gave no reason")
	full.Kind = cmp.Or(e.Kind, kindOf(e.Status, e.Reason), Unfinished)
	if full.Kind == Transient {
		full.RetryAfter = cmp.Or(e.RetryAfter, waitIn(e.Reason))
	}
	return &full
}

// pattern compiles a regular expression when it is first used, because this program is started
// often and rarely needs it.
func pattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// These texts classify the errors of programs that report no kind. They come from the errors of
// codex (codex-rs/protocol/src/error.rs) and gemini (packages/core/src/utils/errorParsing.ts,
// googleQuotaErrors.ts), and from Node.
var (
	limitText     = pattern(`(?i)usage limit|quota exceeded|exhausted your|QUOTA_EXHAUSTED|credit balance|out of (usage )?credits|hit your .*limit|billing`)
	refusedText   = pattern(`(?i)unauthori[sz]ed|authenticat|api key|not logged in|please (run )?/?log ?in|permission denied for model|models?\b.*(not found|does not exist|not supported)|No conversation found|no thread with id|no rollout found|unknown option|unexpected argument`)
	transientText = pattern(`(?i)overloaded|at capacity|high demand|rate.?limit|too many requests|stream disconnected|timed? ?out|connection|ECONN|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|fetch failed|network|temporar|RESOURCE_EXHAUSTED|UNAVAILABLE`)
)

// kindOf classifies a failure by its HTTP status and its text. It returns "" if it cannot.
func kindOf(status int, text string) Kind {
	if status == 0 {
		status = statusIn(text)
	}
	switch {
	case limitText().MatchString(text): // a 429 may be a limit or a temporary failure
		return Limit
	case status == 401 || status == 403 || status == 404:
		return Refused
	case status == 408 || status == 409 || status == 429 || status >= 500:
		return Transient
	case status >= 400:
		return Unfinished
	case refusedText().MatchString(text):
		return Refused
	case transientText().MatchString(text):
		return Transient
	}
	return ""
}

var statusPattern = pattern(`(?i)\b(?:status|http|api error|code)\W{0,3}(?:code\W{0,3})?([45]\d\d)\b`)

func statusIn(text string) int {
	if m := statusPattern().FindStringSubmatch(text); m != nil {
		n, _ := strconv.Atoi(m[1]) // cannot fail: m[1] has three digits
		return n
	}
	return 0
}

// unixTime converts Unix seconds, or milliseconds, which newer programs print.
func unixTime(n float64) time.Time {
	switch {
	case n <= 0:
		return time.Time{}
	case n > 1e11:
		return time.UnixMilli(int64(n))
	}
	return time.Unix(int64(n), 0)
}

var waitPattern = pattern(`(?i)(?:again in|retry after|retry in|reset after)\s+((?:\d+(?:\.\d+)? ?(?:ms|h|m|s))+)`)

// waitIn returns the wait that a text asks for, as in "try again in 12s".
func waitIn(text string) time.Duration {
	if m := waitPattern().FindStringSubmatch(text); m != nil {
		d, _ := time.ParseDuration(strings.ToLower(strings.ReplaceAll(m[1], " ", ""))) // 0 if the text is too long for a duration
		return d
	}
	return 0
}

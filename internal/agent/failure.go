package agent

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A class is the kind of a failure that an agent reports.
type class int

const (
	unknown class = iota
	passing
	limit
	refused
	unfinished
	malformed
)

// A failure is an error that an agent reported.
type failure struct {
	class      class
	status     int
	text       string
	next       string
	retryAfter time.Duration
	resetAt    time.Time
}

// err returns the failure as an error. An unknown failure becomes an UnfinishedError, which is
// neither retried automatically nor treated as a limit of the account.
func (f *failure) err(from Origin) error {
	reason := cmp.Or(quote(f.text), "it gave no reason")
	switch cmp.Or(f.class, classOf(f.status, f.text)) {
	case passing:
		return &TransientError{Origin: from, Status: f.status, Reason: reason, RetryAfter: cmp.Or(f.retryAfter, waitIn(f.text))}
	case limit:
		return &LimitError{Origin: from, Reason: reason, ResetAt: f.resetAt}
	case refused:
		return &RefusedError{Origin: from, Reason: reason, Next: cmp.Or(f.next, "check the agent's login, key and model, then retry")}
	case malformed:
		return &OutputError{Origin: from, Reason: reason}
	}
	return &UnfinishedError{Origin: from, Reason: reason, Next: cmp.Or(f.next, from.retry())}
}

// pattern compiles a regular expression when it is first used, because this program is started
// often and rarely needs it.
func pattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// signs classify the errors of programs that report no kind. The first match counts. They come
// from the errors of codex (codex-rs/protocol/src/error.rs) and gemini
// (packages/core/src/utils/errorParsing.ts, googleQuotaErrors.ts), and from Node.
var signs = []struct {
	class class
	text  func() *regexp.Regexp
}{
	{limit, pattern(`(?i)usage limit|quota exceeded|exhausted your|QUOTA_EXHAUSTED|credit balance|out of (usage )?credits|hit your .*limit|billing`)},
	{refused, pattern(`(?i)unauthori[sz]ed|authenticat|api key|not logged in|please (run )?/?log ?in|permission denied for model|models?\b.*(not found|does not exist|not supported)|No conversation found|no thread with id|no rollout found|unknown option|unexpected argument`)},
	{passing, pattern(`(?i)overloaded|at capacity|high demand|rate.?limit|too many requests|stream disconnected|timed? ?out|connection|ECONN|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|fetch failed|network|temporar|RESOURCE_EXHAUSTED|UNAVAILABLE`)},
}

// classOf classifies a failure by its HTTP status and its text.
func classOf(status int, text string) class {
	if status == 0 {
		status = statusIn(text)
	}
	for _, s := range signs {
		if s.class == limit && s.text().MatchString(text) { // a 429 may be a limit or a temporary failure
			return limit
		}
	}
	switch {
	case status == 401 || status == 403 || status == 404:
		return refused
	case status == 408 || status == 409 || status == 429 || status >= 500:
		return passing
	case status >= 400:
		return unfinished
	}
	for _, s := range signs {
		if s.text().MatchString(text) {
			return s.class
		}
	}
	return unknown
}

var statusPattern = pattern(`(?i)\b(?:status|http|api error|code)\W{0,3}(?:code\W{0,3})?([45]\d\d)\b`)

func statusIn(text string) int {
	if m := statusPattern().FindStringSubmatch(text); m != nil {
		n, _ := strconv.Atoi(m[1]) // three digits
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
		d, _ := time.ParseDuration(strings.ToLower(strings.ReplaceAll(m[1], " ", ""))) // 0 if it is too long for a duration
		return d
	}
	return 0
}

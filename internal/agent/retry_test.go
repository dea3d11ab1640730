package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lockkeeper"
)

func TestRetry(t *testing.T) {
	policy := RetryPolicy{Attempts: 5, First: time.Second, Longest: 4 * time.Second, Random: func() float64 { return 0.5 }}
	passing := &Error{Kind: Transient, Origin: Origin{Agent: "claude"}, Reason: "overloaded"}
	asked := &Error{Kind: Transient, Origin: Origin{Agent: "claude"}, Reason: "slower", RetryAfter: 3 * time.Second}
	long := &Error{Kind: Transient, Origin: Origin{Agent: "claude"}, Reason: "much slower", RetryAfter: time.Hour}
	limited := &Error{Kind: Limit}
	for name, test := range map[string]struct {
		fails []error // the failures in order; then a call succeeds
		at    string  // the times of the calls
		want  error
	}{
		"works":                     {nil, "0s", nil},
		"works in the end":          {[]error{passing, passing, passing}, "0s 750ms 2.25s 5.25s", nil},
		"never works":               {[]error{passing, passing, passing, passing, passing}, "0s 750ms 2.25s 5.25s 8.25s", passing},
		"waits as asked":            {[]error{asked, passing}, "0s 3s 4.5s", nil},
		"asked for too much":        {[]error{long}, "0s", &Error{Kind: Limit}},
		"a limit comes at once":     {[]error{passing, limited}, "0s 750ms", limited},
		"a crash comes at once":     {[]error{&Error{Kind: Crashed}}, "0s", &Error{Kind: Crashed}},
		"wrapped, it is still what": {[]error{fmt.Errorf("call: %w", passing)}, "0s 750ms", nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				var at []string
				_, err := Retry(t.Context(), policy, func(_ context.Context, attempt int) (Result, error) {
					at = append(at, time.Since(start).String())
					if attempt != len(at) {
						t.Errorf("attempt %d is the %dth", attempt, len(at))
					}
					if attempt <= len(test.fails) {
						return Result{}, test.fails[attempt-1]
					}
					return Result{Text: "done"}, nil
				})
				if strings.Join(at, " ") != test.at || !sameType(err, test.want) {
					t.Errorf("%s, %T %v; want %s, %T", at, err, err, test.at, test.want)
				}
				var limit *Error
				if name == "asked for too much" && (!errors.As(err, &limit) || !limit.ResetAt.Equal(start.Add(time.Hour))) {
					t.Errorf("%+v", limit)
				}
			})
		})
	}
}

// A wait before a retry can be canceled.
func TestRetryStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("stop")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(why) })
		calls := 0
		_, err := Retry(ctx, RetryPolicy{Attempts: 9, First: time.Minute, Longest: time.Minute, Random: func() float64 { return 0 }}, func(context.Context, int) (Result, error) {
			calls++
			return Result{}, &Error{Kind: Transient}
		})
		if !errors.Is(err, why) || calls != 1 {
			t.Errorf("%v after %d calls", err, calls)
		}
	})
	if _, err := Retry(t.Context(), RetryPolicy{}, nil); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
		t.Error(err)
	}
}

// Errors of programs that report no class are classified by their text.
func TestClasses(t *testing.T) {
	for text, want := range map[string]Kind{
		"You’ve hit your usage limit. Upgrade to Pro or try again at 3:05 PM.": Limit,
		"Quota exceeded. Check your plan and billing details.":                 Limit,
		"[API Error: You have exhausted your daily quota on this model.]":      Limit,
		"unexpected status 401 Unauthorized: Incorrect API key provided":       Refused,
		"The model gpt-9 does not exist or you do not have access to it.":      Refused,
		"[API Error: models/x is not found]":                                   Refused,
		"error: unknown option '--bogus'":                                      Refused,
		"exceeded retry limit, last status: 429 Too Many Requests":             Transient,
		"Selected model is at capacity. Please try a different model.":         Transient,
		"stream disconnected before completion: error sending request":         Transient,
		"[API Error: exception TypeError: fetch failed sending request]":       Transient,
		"unexpected status 503 Service Unavailable":                            Transient,
		`[API Error: {"error":{"code":500,"message":"x"}}]`:                    Transient,
		"unexpected status 400 Bad Request: the prompt is too long":            Unfinished,
		"Codex ran out of room in the model's context window.":                 "",
		"panicked at core/src/lib.rs:500":                                      "",
		"":                                                                     "",
	} {
		if got := kindOf(0, text); got != want {
			t.Errorf("%q: kind %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]time.Duration{
		"Please try again in 1.5s.": 1500 * time.Millisecond,
		"retry after 20 seconds":    20 * time.Second,
		"reset after 1h2m3s":        time.Hour + 2*time.Minute + 3*time.Second,
		"try again in a while":      0,
		"try again in 99999999999h": 0,
	} {
		if got := waitIn(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// codexReset returns the time at which a limit ends.
func TestCodexReset(t *testing.T) {
	now := time.Date(2026, 3, 4, 10, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"or try again at 3:05 PM.":              "2026-03-04T15:05:00Z",
		"Try again at Mar 21st, 2026 12:00 AM.": "2026-03-21T00:00:00Z",
		"try again at Feb 30th, 2026 12:00 AM.": "0001-01-01T00:00:00Z",
		"try again later.":                      "0001-01-01T00:00:00Z",
	} {
		if got := codexReset(text, now).Format(time.RFC3339); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

package agent

import (
	"context"
	"errors"
	"time"

	"lockkeeper"
)

// RetryPolicy is how often and when a call that failed in passing is made again.
type RetryPolicy struct {
	Attempts int           // all in all; 1: no second one
	First    time.Duration // before the second; it doubles each time
	Longest  time.Duration // the longest wait

	// Random draws from [0,1). A wait is between half of its time and all of it, so that
	// many who failed at once do not come back at once.
	Random func() float64
}

// Retry makes a call until it does not fail in passing, or has been made as often as it
// may. Other failures come back at once, limits above all: while one holds, every call
// fails. What the API asks to wait is honoured; where that is longer than the policy
// waits, it is a limit like any other.
//
// Each attempt costs what it costs: the call counts that by itself.
func Retry(ctx context.Context, p RetryPolicy, call func(ctx context.Context, attempt int) (Result, error)) (Result, error) {
	if p.Attempts < 1 || p.First <= 0 || p.Longest < p.First || p.Random == nil {
		return Result{}, &lockkeeper.InputError{Field: "retry policy", Reason: "it has to permit an attempt, and waits that are positive and bounded"}
	}
	wait := p.First
	for attempt := 1; ; attempt++ {
		res, err := call(ctx, attempt)
		var passing *TransientError
		if !errors.As(err, &passing) || attempt == p.Attempts || ctx.Err() != nil {
			return res, err
		}
		if passing.RetryAfter > p.Longest {
			return res, &LimitError{Origin: passing.Origin, Reason: passing.Reason, ResetAt: time.Now().Add(passing.RetryAfter)}
		}
		drawn := wait/2 + time.Duration(p.Random()*float64(wait/2))
		if stopped := pause(ctx, max(drawn, passing.RetryAfter)); stopped != nil {
			return res, errors.Join(stopped, err)
		}
		wait = min(2*wait, p.Longest)
	}
}

// pause waits, unless ctx ends before.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

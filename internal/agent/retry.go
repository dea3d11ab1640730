package agent

import (
	"context"
	"errors"
	"time"

	"lockkeeper"
)

// A RetryPolicy limits how often and when a call that failed temporarily is retried.
type RetryPolicy struct {
	Attempts int           // number of attempts in total; 1: no retry
	First    time.Duration // wait before the second attempt; it doubles with each further attempt
	Longest  time.Duration // the longest wait

	// Random returns a number in [0,1). A wait is between half of its time and all of it, so
	// that calls that failed together do not retry together.
	Random func() float64
}

// Retry repeats a call that fails with a Transient error, up to the allowed number of attempts. It
// returns other failures at once. These include limits of the account, because every call fails
// until they are reset. It waits as long as the API asks. A wait longer than the policy allows
// becomes a Limit.
//
// The function call counts the cost of each attempt itself.
func Retry(ctx context.Context, p RetryPolicy, call func(ctx context.Context, attempt int) (Result, error)) (Result, error) {
	if p.Attempts < 1 || p.First <= 0 || p.Longest < p.First || p.Random == nil {
		return Result{}, &lockkeeper.InputError{Field: "retry policy", Reason: "needs at least one attempt, and positive bounded waits"}
	}
	wait := p.First
	for attempt := 1; ; attempt++ {
		res, err := call(ctx, attempt)
		passing, ok := errors.AsType[*Error](err)
		if !ok || passing.Kind != Transient || attempt == p.Attempts || ctx.Err() != nil {
			return res, err
		}
		if passing.RetryAfter > p.Longest {
			return res, &Error{Origin: passing.Origin, Kind: Limit, Reason: passing.Reason, ResetAt: time.Now().Add(passing.RetryAfter)}
		}
		drawn := wait/2 + time.Duration(p.Random()*float64(wait/2))
		if stopped := pause(ctx, max(drawn, passing.RetryAfter)); stopped != nil {
			return res, errors.Join(stopped, err)
		}
		wait = min(2*wait, p.Longest)
	}
}

// pause waits until the time is over or ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

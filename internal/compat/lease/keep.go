package lease

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Keep renews the lease on a timer until stop is called. The context it returns ends with
// the lease. Its cause is a *LostError if another holder has the file, or another error if
// renewal failed for two thirds of the TTL. The remaining third is for stopping the work.
// Earlier failures are reported to Options.Note and retried.
func (l *Lease) Keep(ctx context.Context) (held context.Context, stop func()) {
	held, lose := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.keep(held, lose)
	}()
	return held, func() {
		lose(context.Canceled)
		<-ended
	}
}

// Interval returns how often Keep renews.
func (o Options) Interval() time.Duration {
	if o.Heartbeat > 0 {
		return max(min(o.Heartbeat, o.TTL/3), time.Millisecond)
	}
	return max(o.TTL/3, time.Millisecond)
}

func (l *Lease) keep(ctx context.Context, lose context.CancelCauseFunc) {
	last := time.Now()
	tick := time.NewTicker(l.opt.Interval())
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		tried := time.Now()
		err := l.Renew(ctx)
		var lost *LostError
		switch {
		case err == nil:
			last = tried
		case ctx.Err() != nil:
			return
		case errors.As(err, &lost):
			lose(lost)
			return
		case time.Since(last) >= l.opt.TTL*2/3:
			lose(fmt.Errorf("lease file %s could not be renewed for %s: %w", l.path, time.Since(last).Round(time.Second), err))
			return
		default:
			l.opt.Note("the lease file could not be renewed, retrying: " + err.Error())
		}
	}
}

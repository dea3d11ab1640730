package command

import (
	"context"
	"errors"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/surface/feed"
)

// Follow calls show after every event, and every WatchEvery without one, until a signal ends
// it.
func Follow(ctx context.Context, open func(context.Context) (*feed.Feed, error), show func(context.Context) error) error {
	ctx, stop := Interruptible(ctx)
	defer stop()
	events, err := open(ctx)
	if err != nil {
		return err
	}
	defer events.Close()
	for seen := events.Last(); ; {
		if err := show(ctx); err != nil {
			return WatchEnd(ctx, err)
		}
		wait, done := context.WithTimeout(ctx, WatchEvery)
		news, err := events.Next(wait, seen)
		done()
		switch {
		case ctx.Err() != nil:
			return WatchEnd(ctx, nil)
		case len(news) > 0:
			seen = news[len(news)-1].Seq
		case !errors.Is(err, context.DeadlineExceeded):
			return err
		}
	}
}

// WatchEnd returns the error that ends a watch. A signal ends it without a message.
func WatchEnd(ctx context.Context, err error) error {
	var by *InterruptedError
	if errors.As(context.Cause(ctx), &by) {
		return KilledBy(by.Signal, nil)
	}
	return err
}

// PageSize is how many events one query reads at most.
const PageSize = 1_000

// Words returns the kind of an event for people.
func Words(k lockkeeper.EventKind) string { return strings.ReplaceAll(string(k), "_", " ") }

// WatchEvery is how often a watcher reads again without an event: durations change, and the
// progress that an item notes is not an event.
const WatchEvery = 2 * time.Second

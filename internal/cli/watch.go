package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"lockkeeper/internal/app"
	"lockkeeper/internal/feed"
)

// follow shows something whenever anything happens, and now and then when nothing does,
// until somebody has seen enough.
func follow(ctx context.Context, open func(context.Context) (*feed.Feed, error), show func(context.Context) error) error {
	ctx, stop := interruptible(ctx)
	defer stop()
	events, err := open(ctx)
	if err != nil {
		return err
	}
	defer events.Close()
	for seen := events.Last(); ; {
		if err := show(ctx); err != nil {
			return watchEnd(ctx, err)
		}
		wait, done := context.WithTimeout(ctx, watchEvery)
		news, err := events.Next(wait, seen)
		done()
		switch {
		case ctx.Err() != nil:
			return watchEnd(ctx, nil)
		case len(news) > 0:
			seen = news[len(news)-1].Seq
		case !errors.Is(err, context.DeadlineExceeded):
			return err
		}
	}
}

// watchEnd is the end of a watch: by the signal that ended it there is nothing to say.
func watchEnd(ctx context.Context, err error) error {
	var by *interruptedError
	if errors.As(context.Cause(ctx), &by) {
		return killedBy(by.signal, nil)
	}
	return err
}

// watchStatus shows the status as it changes: anew to a person, and to a program, a line of
// JSON, when it is another.
func (p *program) watchStatus(ctx context.Context, a *app.App) error {
	said := ""
	open := func(ctx context.Context) (*feed.Feed, error) { return a.Feed(ctx, feed.Options{}) }
	return follow(ctx, open, func(ctx context.Context) error {
		s, err := p.gatherAll(ctx, a)
		if err != nil {
			return err
		}
		if p.json {
			line, err := json.Marshal(s)
			if err != nil || string(line) == said {
				return err
			}
			said = string(line)
			_, err = fmt.Fprintln(p.Out, said)
			return err
		}
		if p.obeys(p.Out) {
			fmt.Fprint(p.Out, home)
		} else {
			fmt.Fprintln(p.Out, p.Now().Format(time.TimeOnly))
		}
		if err := p.showStatus(s); err != nil {
			return err
		}
		return p.Out.err
	})
}

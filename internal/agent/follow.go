package agent

import (
	"context"
	"errors"
	"time"
)

// pollInterval is the time between two reads of the output. A file watch would be faster, but
// a user has few watches, network file systems have none, and a read costs one system call.
const pollInterval = 200 * time.Millisecond

// readAtOnce bounds one read, so that an agent that prints too much is noticed in time.
const readAtOnce = 64 << 20

// A watch is the state of a call in progress.
type watch struct {
	began   time.Time
	moved   time.Time // when output last arrived
	stalled bool      // EventStalled was sent
	doing   string    // the last activity of the agent
	ended   error     // why Call ended the agent; nil if it did not
}

func (w *watch) silent() time.Duration { return time.Since(w.moved) }

// hear passes an event on and records the agent's activity.
func (c *call) hear(e Event) {
	switch e.Kind {
	case EventToolUse:
		c.watch.doing = "it used the tool " + clean(e.Tool, quotable)
	case EventRetry:
		c.watch.doing = "it waited to retry a request"
	case EventText, EventToolResult:
		c.watch.doing = "it waited for the model"
	}
	c.options.Tell(e)
}

// follow runs the agent and reads its output. It returns when the Runner has returned and all
// output is read.
func (c *call) follow(parent context.Context, cmd Command) (Exit, error) {
	ctx, end := context.WithCancelCause(parent)
	defer end(nil)
	type ran struct {
		exit Exit
		err  error
	}
	done := make(chan ran, 1)
	go func() {
		exit, err := c.options.Run(ctx, cmd)
		done <- ran{exit, err}
	}()
	stop := func(why error) {
		if c.watch.ended == nil && parent.Err() == nil {
			c.watch.ended = why
			end(why)
		}
	}
	c.watch.moved = time.Now()
	ticks := time.NewTicker(pollInterval)
	defer ticks.Stop()
	for {
		select {
		case r := <-done:
			// A process that did not end may still write.
			for moved := true; moved && c.reader.size <= c.options.MaxOutput; {
				var err error
				if moved, err = c.read(); err != nil {
					return r.exit, errors.Join(r.err, err)
				}
			}
			return r.exit, r.err
		case <-ticks.C:
			c.tick(stop)
		}
	}
}

// read reads new output, and reports whether there was any.
func (c *call) read() (moved bool, err error) {
	w := &c.watch
	moved, err = c.reader.advance(readAtOnce)
	if moved {
		w.moved = time.Now()
	}
	if moved && w.stalled {
		w.stalled = false
		c.options.Tell(Event{Kind: EventMoved, At: w.moved})
	}
	return moved, err
}

// tick reads new output and checks the limits.
func (c *call) tick(stop func(error)) {
	if _, err := c.read(); err != nil {
		stop(err)
		return
	}
	w := &c.watch
	silent := w.silent()
	if silent >= c.options.StallAfter && !w.stalled {
		w.stalled = true
		c.options.Tell(Event{Kind: EventStalled, At: time.Now(), Wait: silent, Text: w.doing})
	}
	switch {
	case c.reader.size > c.options.MaxOutput:
		stop(errFloods)
	case c.options.Timeout > 0 && time.Since(w.began) >= c.options.Timeout:
		stop(errTimedOut)
	case silent >= linger && c.reader.finished(nil):
		stop(errLingers)
	}
}

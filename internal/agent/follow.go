package agent

import (
	"context"
	"errors"
	"time"
)

// look is the time between two looks at the output. The kernel could tell of every
// write, but a user has few watches, network file systems have none, and a look costs
// one system call.
const look = 200 * time.Millisecond

// readAtOnce bounds what one look reads, so that an agent that floods its output is
// noticed while it does.
const readAtOnce = 64 << 20

// watch is what is known of the life of a call.
type watch struct {
	began   time.Time
	moved   time.Time // when something was last said
	stalled bool      // a silence was reported
	doing   string    // what the agent did last
	ended   error     // why this call ended its agent; nil: it did not
}

func (w *watch) silent() time.Duration { return time.Since(w.moved) }

// hear passes an event on, and remembers what the agent is doing.
func (c *call) hear(e Event) {
	switch e.Kind {
	case EventToolUse:
		c.watch.doing = "it used the tool " + clean(e.Tool, quotable)
	case EventRetry:
		c.watch.doing = "it waited to try a request again"
	case EventText, EventToolResult:
		c.watch.doing = "it waited for the model"
	}
	c.options.Tell(e)
}

// follow runs the agent and reads along. It returns when the Runner has and everything
// is read.
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
	ticks := time.NewTicker(look)
	defer ticks.Stop()
	for {
		select {
		case r := <-done:
			// What would not go may go on writing.
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

// read reads what is new, and reports whether anything was.
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

// tick is one look at the output.
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
	case silent >= c.options.Linger && c.reader.finished(nil):
		stop(errLingers)
	}
}

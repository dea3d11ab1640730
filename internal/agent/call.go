package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"slices"
	"time"

	"lockkeeper"
)

// Defaults of Options.
const (
	DefaultStallAfter = 10 * time.Minute
	linger            = 30 * time.Second // how long the agent may run after its result
	DefaultMaxOutput  = 1 << 30
)

// Options configure a call.
type Options struct {
	Run  Runner
	Tell func(Event) // gets the events, and must return quickly; may be nil

	Timeout    time.Duration // limit for the whole call; 0: no limit
	StallAfter time.Duration // silence after which EventStalled is sent; 0: DefaultStallAfter
	MaxOutput  int64         // bytes of output; 0: DefaultMaxOutput
}

func (o Options) withDefaults() Options {
	if o.Tell == nil {
		o.Tell = func(Event) {}
	}
	o.StallAfter, o.MaxOutput = cmp.Or(o.StallAfter, DefaultStallAfter), cmp.Or(o.MaxOutput, DefaultMaxOutput)
	return o
}

// The reasons why a call ends its agent.
var (
	errTimedOut = errors.New("the call timed out")
	errLingers  = errors.New("the agent did not exit after its result")
	errFloods   = errors.New("too much output")
)

// Call calls an agent and returns when all of its processes have ended. It returns an error if
// the agent reported a failure, if its answer does not match the schema, or if the Runner failed.
// The result always has the known facts.
func Call(ctx context.Context, a Adapter, r Request, f Files, o Options) (Result, error) {
	if ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	if err := errors.Join(r.check(), f.check()); err != nil {
		return Result{}, err
	}
	form, err := newSchema(r.Schema)
	if err != nil {
		return Result{}, err
	}
	cmd, stdin, err := a.command(&r, f)
	if err == nil {
		err = cmd.checkSecrets()
	}
	if err != nil {
		return Result{}, err
	}
	opened, err := f.prepare(&r, stdin, &cmd)
	defer opened.close()
	if err != nil {
		return Result{}, err
	}
	c := &call{verdict: verdict{name: a.Name(), plain: isPlain(a), files: f, form: form}, options: o.withDefaults(), watch: watch{began: time.Now()}}
	c.reader = newReader(opened.output, a.stream(), c.hear)
	exit, runErr := c.follow(ctx, cmd)
	return c.outcome(ctx, exit, runErr)
}

type call struct {
	verdict
	options Options
	watch   watch
}

// outcome returns the result of a call whose agent has ended.
func (c *call) outcome(ctx context.Context, exit Exit, runErr error) (Result, error) {
	// The parts of the Runner's error that do not report the requested end are failures of the
	// Runner, for example processes that did not end.
	trouble := except(runErr, context.Cause(ctx), c.watch.ended)
	exit.Stopped = isOneOf(runErr, context.Cause(ctx), c.watch.ended)
	c.exit = &exit
	res, finished, err := c.pass()
	if res.Duration == 0 {
		res.Duration = time.Since(c.watch.began)
	}
	if !finished {
		err = c.whyNot(ctx, c.origin(res), exit, trouble)
	}
	if trouble != nil && !errors.Is(err, trouble) {
		err = errors.Join(err, trouble)
	}
	record := exitRecord{Exit: exit, EndedAt: time.Now().UTC()}
	if unkept := record.write(context.WithoutCancel(ctx), c.files); unkept != nil {
		err = errors.Join(err, unkept)
	}
	return res, err
}

// whyNot returns the reason why there is no result.
func (c *call) whyNot(ctx context.Context, from Origin, exit Exit, trouble error) error {
	switch {
	case errors.Is(c.watch.ended, errTimedOut):
		return &Error{Origin: from, Kind: TimedOut, Reason: c.options.Timeout.String()}
	case errors.Is(c.watch.ended, errFloods):
		return &Error{Origin: from, Kind: Garbage, Reason: fmt.Sprintf("more than %d MB", c.options.MaxOutput>>20), Sample: c.reader.sample}
	case ctx.Err() != nil && c.watch.stalled:
		reason := c.watch.silent().Round(time.Second).String() + " without output"
		if c.watch.doing != "" {
			reason += ", since " + c.watch.doing
		}
		return &Error{Origin: from, Kind: Stalled, Reason: reason + ": " + context.Cause(ctx).Error(), Err: context.Cause(ctx)}
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(trouble, exec.ErrNotFound) || errors.Is(trouble, fs.ErrNotExist):
		return &Error{Origin: from, Kind: Refused, Reason: trouble.Error(), Next: "install the program, or set agent.command in lockkeeper.yaml", Err: trouble}
	case trouble != nil:
		return trouble
	case c.watch.ended != nil:
		return c.watch.ended
	}
	return c.reader.unfinished(from, exit, lastLine(c.files.Log))
}

// except returns an error without the parts that wrap one of the other errors.
func except(err error, others ...error) error {
	if err == nil {
		return nil
	}
	return errors.Join(slices.DeleteFunc(lockkeeper.Parts(err), func(part error) bool { return isOneOf(part, others...) })...)
}

// isOneOf reports whether an error wraps one of the other errors, which may be nil.
func isOneOf(err error, others ...error) bool {
	return slices.ContainsFunc(others, func(other error) bool { return other != nil && errors.Is(err, other) })
}

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

// Completed reads the files of a call, which another process may have made. It reports whether
// the call is finished. If so, the error is the one that Call would have returned. Otherwise the
// result has the known facts, such as the session. Missing or partial output is not an error.
func Completed(a Adapter, f Files, schemaText []byte) (res Result, finished bool, err error) {
	form, err := newSchema(schemaText)
	if err != nil {
		return Result{}, false, err
	}
	exit, err := readExit(f)
	if err != nil {
		return Result{}, false, err
	}
	file, err := openRegular(f.Output)
	if errors.Is(err, fs.ErrNotExist) {
		return Result{}, false, nil
	}
	if err != nil {
		return Result{}, false, err
	}
	defer file.Close()
	r := newReader(file, a.stream(), func(Event) {})
	for moved := true; moved; {
		if moved, err = r.advance(readAtOnce); err != nil {
			return Result{}, false, err
		}
	}
	v := verdict{name: a.Name(), plain: isPlain(a), files: f, form: form, reader: r, exit: exit}
	return v.pass()
}

// A verdict evaluates the output of an agent, both when it has just ended and when its file is
// read later.
type verdict struct {
	name   string
	plain  bool // the agent is any program, which may not know the form of answers
	files  Files
	form   *schema
	reader *reader
	exit   *Exit // nil: not observed
}

func (v *verdict) origin(res Result) Origin {
	return Origin{Agent: v.name, Session: res.Session, Output: v.files.Output}
}

// pass returns the result, whether the call is finished, and if so its error.
func (v *verdict) pass() (Result, bool, error) {
	res, failed := v.reader.stream.result(v.reader.lines.rest)
	res.Exit = v.exit
	answer := res.Structured
	res.Structured = nil // the adapter fills it in; it stays empty until it is validated
	if !v.reader.finished(v.exit) {
		return res, false, nil
	}
	from := v.origin(res)
	if failed != nil {
		return res, true, failed.from(from)
	}
	if v.form == nil {
		return res, true, nil
	}
	found, note, err := v.form.find(from, answer, v.plain)
	if err != nil {
		return res, true, err
	}
	res.Structured, res.Note = found, note
	return res, true, nil
}

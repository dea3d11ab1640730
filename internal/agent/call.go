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

	Timeout    time.Duration // of the whole call; 0: no limit
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
	c := &call{
		adapter: a, files: f, form: form, options: o.withDefaults(),
		watch: watch{began: time.Now()},
	}
	c.reader = newReader(opened.output, a.stream(), c.hear)
	exit, runErr := c.follow(ctx, cmd)
	return c.outcome(ctx, exit, runErr)
}

// A call is a call in progress.
type call struct {
	adapter Adapter
	files   Files
	form    *schema
	options Options
	reader  *reader
	watch   watch
}

// outcome returns the result of a call whose agent has ended.
func (c *call) outcome(ctx context.Context, exit Exit, runErr error) (Result, error) {
	// The parts of the Runner's error that do not report the requested end are failures of the
	// Runner, for example processes that did not end.
	trouble := except(runErr, context.Cause(ctx), c.watch.ended)
	exit.Stopped = isOneOf(runErr, context.Cause(ctx), c.watch.ended)
	v := verdict{name: c.adapter.Name(), files: c.files, form: c.form, reader: c.reader, exit: &exit}
	res, finished, err := v.pass()
	if res.Duration == 0 {
		res.Duration = time.Since(c.watch.began)
	}
	if !finished {
		err = c.whyNot(ctx, v.origin(res), exit, trouble)
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
		return &TimedOutError{Origin: from, After: c.options.Timeout}
	case errors.Is(c.watch.ended, errFloods):
		return &GarbageError{Origin: from, Reason: fmt.Sprintf("more than %d MB", c.options.MaxOutput>>20), Sample: c.reader.sample}
	case ctx.Err() != nil && c.watch.stalled:
		return &StalledError{Origin: from, Silent: c.watch.silent(), Doing: c.watch.doing, Err: context.Cause(ctx)}
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(trouble, exec.ErrNotFound) || errors.Is(trouble, fs.ErrNotExist):
		return &RefusedError{Origin: from, Reason: trouble.Error(), Next: "install the program, or set agent.command in lockkeeper.yaml", Err: trouble}
	case trouble != nil:
		return trouble
	case c.watch.ended != nil:
		return c.watch.ended
	}
	return c.reader.unfinished(from, exit, lastLine(c.files.Log))
}

// except returns an error without the parts that wrap one of the others.
func except(err error, others ...error) error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var rest []error
		for _, part := range joined.Unwrap() {
			rest = append(rest, except(part, others...))
		}
		return errors.Join(rest...)
	}
	if isOneOf(err, others...) {
		return nil
	}
	return err
}

// isOneOf reports whether an error wraps one of the others. These may be nil.
func isOneOf(err error, others ...error) bool {
	return slices.ContainsFunc(others, func(other error) bool { return other != nil && errors.Is(err, other) })
}

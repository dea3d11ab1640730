package run

import (
	"context"
	"errors"
	"os"
	"time"

	"lockkeeper/internal/agent/workspace"
	"lockkeeper/internal/machine/process"
)

// An executed is a test or CI command that has ended.
type executed struct {
	exit    int
	took    time.Duration
	tooLong bool // it was stopped at the time limit
}

// execute runs a test or CI command in a workspace, in the sandbox and within a time limit. It
// prepares the command and then calls the function begin, which acquires the slot.
func (p *Pipeline) execute(ctx context.Context, t execution, at site, command string, limit time.Duration, out *os.File, begin func() (done func() error, err error)) (ran executed, err error) {
	ready, err := p.prepare(ctx, t, at)
	if err != nil {
		return ran, err
	}
	defer func() { err = errors.Join(err, ready.close()) }()
	done, err := begin()
	if err != nil {
		return ran, err
	}
	limited, cancel := context.WithTimeoutCause(ctx, limit, errTooLong)
	defer cancel()
	began := time.Now()
	ran.exit, err = ready.run(limited, process.Command{
		Argv: []string{"sh", "-c", command}, Dir: at.w.Dir(), Env: p.checkEnv(t, at.w), Stdout: out, Stderr: out,
	})
	ran.took = time.Since(began)
	if errors.Is(err, errTooLong) && ctx.Err() == nil {
		ran.exit, ran.tooLong, err = max(ran.exit, 124), true, nil
	}
	return ran, errors.Join(err, done())
}

// executeNumbered does the same for an execution that has a test slot, under the number of the slot.
func (p *Pipeline) executeNumbered(ctx context.Context, t execution, w *workspace.Workspace, command string, limit time.Duration, out *os.File) (executed, error) {
	return p.execute(ctx, t, site{w: w}, command, limit, out, func() (func() error, error) { return p.lockSlot(ctx, t.Slot()) })
}

var errTooLong = errors.New("timed out")

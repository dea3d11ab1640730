package run

import (
	"context"
	"errors"
	"os"
	"time"

	"lockkeeper/internal/machine/process"
)

// An executed is a test or CI command that has ended.
type executed struct {
	exit    int
	took    time.Duration
	tooLong bool // it was stopped at the time limit
}

// execute runs a test or CI command in a workspace, in the sandbox and within the time limit. It
// prepares the command and then calls the function begin, which acquires the slot.
func (p *Pipeline) execute(ctx context.Context, t execution, at site, command string, out *os.File, begin func() (done func() error, err error)) (ran executed, err error) {
	ready, err := p.prepare(ctx, t, at)
	if err != nil {
		return ran, err
	}
	defer func() { err = errors.Join(err, ready.close()) }()
	done, err := begin()
	if err != nil {
		return ran, err
	}
	limited, cancel := context.WithTimeoutCause(ctx, p.opt.Limits.CheckTimeout, errTooLong)
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

var errTooLong = errors.New("timed out")

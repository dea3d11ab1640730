package compat

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"lockkeeper/internal/compat/lease"
	"lockkeeper/internal/surface/cli/command"
)

func (p *program) leaseAcquireCommand() *cobra.Command {
	var r leaseRequest
	var path string
	var pid int
	cmd := &cobra.Command{
		Use:   "acquire --path FILE",
		Short: "Acquire a lease and print its token",
		Long: `Take a lease, and print the token that proves it: renew and release want to see it.
It lasts for its time to live, and longer when it is renewed. Exit code 4 means that
somebody else had it all the time, and says who, since when and until when.

Under lease run, a lease that comes before one that is held is refused: all are taken
in the order tidy, queue, archive, then others by path.`,
		Example: `  token=$(lockkeeper lease acquire --path .autonomous_runs/.locks/tidy.lock --owner tidy_up)
  lockkeeper lease acquire --path build.lock --ttl 10m --timeout 2m
  lockkeeper lease acquire --path build.lock --read --timeout 0`,
		Args: command.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			path, err := p.leasePath(cmd, path)
			if err != nil {
				return err
			}
			opt, err := r.options(p)
			if err != nil {
				return err
			}
			opt.PID = pid
			return p.leaseAcquire(cmd.Context(), lease.New(path, opt), time.Duration(r.timeout))
		},
	}
	r.flags(cmd.Flags())
	cmd.Flags().StringVar(&path, "path", "", "the lease `file`")
	cmd.Flags().IntVar(&pid, "pid", os.Getppid(), "the `process` that others are shown; that it ends frees nothing")
	cmd.Flag("pid").DefValue = "who started this command"
	return cmd
}

func (p *program) leaseAcquire(ctx context.Context, l *lease.Lease, timeout time.Duration) error {
	waiting, stop := command.Interruptible(ctx)
	defer stop()
	if err := p.stack().Acquire(waiting, l, timeout); err != nil {
		return p.leaseFailed(command.Interrupted(waiting, err), "--timeout")
	}
	var err error
	if p.JSON {
		m := l.Metrics()
		err = p.PrintJSON(map[string]any{"path": l.Path(), "token": l.Token(), "acquired_in_seconds": m.AcquiredIn.Seconds(), "attempts": m.Attempts})
	} else {
		_, err = fmt.Fprintln(p.Out, l.Token())
	}
	if err != nil { // nobody knows the token
		_, releasing := l.Release(ctx)
		err = errors.Join(err, releasing)
	}
	return err
}

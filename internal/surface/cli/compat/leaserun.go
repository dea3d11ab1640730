package compat

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/compat/lease"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/locks"
	"lockkeeper/internal/surface/cli/term"
)

type leaseRunOptions struct {
	leaseRequest
	paths            []string
	without, metrics bool
}

func (p *program) leaseRunCommand() *cobra.Command {
	var o leaseRunOptions
	cmd := &cobra.Command{
		Use:   "run --path FILE [--path FILE]… -- COMMAND…",
		Short: "Run a command under a lease",
		Long: `Acquire a lease, run a command, and release the lease when it ends. While the command
runs, the lease is renewed by a timer, and whenever the command calls lockkeeper lease
renew, with --phase NAME to mark a phase of its work. Signals are passed on to the
command, and its exit code becomes the exit code. If the lease is lost, or cannot be
renewed for two thirds of its time, the command and everything it started are stopped,
and the exit code is 125.

Several leases are acquired in the order tidy, queue, archive, then others by path, and
released in reverse. Exit code 4, with a message of lockkeeper, means that a lease was
not free in time. The command was then never started.`,
		Example: `  lockkeeper lease run --path .autonomous_runs/.locks/tidy.lock -- python scripts/tidy/tidy_up.py --execute
  lockkeeper lease run --path build.lock --ttl 10m --timeout 1h -- make release
  lockkeeper lease run --path queue.lock --path archive.lock --metrics -- ./consolidate`,
		Args: p.AfterDashes,
		RunE: func(cmd *cobra.Command, argv []string) error { return p.leaseRun(cmd, o, argv) },
	}
	o.flags(cmd.Flags())
	cmd.Flags().StringArrayVar(&o.paths, "path", nil, "a lease `file`; repeatable")
	cmd.Flags().BoolVar(&o.without, "no-lease", false, "run the command without a lease; unsafe, because another process may do the same work")
	cmd.Flags().BoolVar(&o.metrics, "metrics", false, "print at the end how long acquiring took, and how often the lease was renewed")
	cmd.Flags().SetInterspersed(false) // flags after the command are the command's
	return cmd
}

func (p *program) leaseRun(cmd *cobra.Command, o leaseRunOptions, argv []string) error {
	leases, err := o.leases(p, cmd)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	waiting, stop := command.Interruptible(ctx)
	defer stop()
	held := p.stack()
	for _, l := range leases {
		if err := held.Acquire(waiting, l, time.Duration(o.timeout)); err != nil {
			return p.leaseFailed(errors.Join(command.Interrupted(waiting, err), held.Close(ctx)), "--timeout")
		}
	}
	under := ctx
	var keepers []func()
	for _, l := range leases {
		kept, stop := l.Keep(under)
		under, keepers = kept, append(keepers, stop)
	}
	var end locks.Ending
	end.Code, end.Err = process.Run(under, process.Command{
		Argv: argv, Dir: p.Base(), Env: p.leaseEnvironment(leases), Stdin: p.In, Stdout: p.Out.File, Stderr: p.Err,
		Grant: "lease-" + rand.Text(), Foreground: true, KillAfter: min(5*time.Second, time.Duration(o.ttl)/4),
		Killed:  func(by syscall.Signal) { end.By = by },
		Started: func(lockkeeper.Process) error { return context.Cause(waiting) },
	})
	lost := context.Cause(under)
	for _, stop := range slices.Backward(keepers) {
		stop()
	}
	if left := (*process.LeftoversError)(nil); errors.As(end.Err, &left) {
		return &command.ExitError{Code: command.ExitFailed, Err: fmt.Errorf("the lease is not released, and expires: %w", end.Err)}
	}
	if o.metrics {
		err = p.leaseCosts(leases)
	}
	return p.leaseEnded(end, lost, errors.Join(err, held.Close(ctx)))
}

// leases returns the requested leases in the order in which they are acquired.
func (o *leaseRunOptions) leases(p *program, cmd *cobra.Command) (list []*lease.Lease, err error) {
	if o.without {
		fmt.Fprintln(p.Err, "warning: --no-lease: no lease is acquired, so another process may do the same work at the same time")
		return nil, nil
	}
	if len(o.paths) == 0 {
		return nil, command.Usage(cmd, "needs a lease file, with --path; nothing was run")
	}
	if time.Duration(o.ttl) < locks.ShortestTTL {
		return nil, &lockkeeper.InputError{Field: "ttl", Value: time.Duration(o.ttl).String(), Reason: "shorter than " + locks.ShortestTTL.String() + ", so it cannot be renewed in time", Next: "give a longer lease"}
	}
	opt, err := o.options(p)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, typed := range o.paths {
		path, err := p.leasePath(cmd, typed)
		if err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	lease.Sort(paths)
	for _, path := range paths {
		list = append(list, lease.New(path, opt))
	}
	return list, nil
}

// leaseEnvironment returns the environment of the command, with its leases.
func (p *program) leaseEnvironment(leases []*lease.Lease) []string {
	var lines []string
	for _, l := range p.leasesAbove() {
		lines = append(lines, l.token+" "+l.path)
	}
	for _, l := range leases {
		lines = append(lines, l.Token()+" "+l.Path())
	}
	return append(slices.Clone(p.Env), leasesVariable+"="+strings.Join(lines, "\n"))
}

// leaseCosts prints the metrics of the leases, while they are held.
func (p *program) leaseCosts(leases []*lease.Lease) error {
	for _, l := range leases {
		info, err := lease.Inspect(l.Path(), lease.Defaults())
		if err != nil {
			return err
		}
		for _, h := range info.Holders {
			fmt.Fprintf(p.Err, "lease %s: %s\n", term.Clean(l.Path()), leaseMetrics(h))
		}
	}
	return nil
}

// leaseEnded returns how the command ended.
func (p *program) leaseEnded(end locks.Ending, lost, released error) error {
	var early *command.InterruptedError // before the command started
	switch {
	case lost != nil:
		return p.leaseFailed(&command.ExitError{Code: command.ExitLost, Err: fmt.Errorf("the command was stopped: %w", lost)}, "")
	case errors.As(end.Err, &early):
		return command.KilledBy(early.Signal, early)
	case end.Err != nil && (end.Code == process.ExitNotFound || end.Code == process.ExitNotExecutable):
		return &command.ExitError{Code: end.Code, Err: end.Err}
	case end.Err != nil:
		return &command.ExitError{Code: command.ExitFailed, Err: end.Err}
	case released != nil:
		return &command.ExitError{Code: command.ExitLost, Err: fmt.Errorf("the command ended with %d, but its lease could not be released: %w", end.Code, released)}
	case end.Code == 0:
		return nil
	case end.By == syscall.SIGINT || end.By == syscall.SIGTERM:
		return command.KilledBy(end.By, nil)
	}
	return &command.ExitError{Code: end.Code}
}

package compat

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockkeeper"
	"lockkeeper/internal/compat/lease"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/locks"
	"lockkeeper/internal/surface/cli/term"
)

func (p *program) leaseAcquireCommand() *cobra.Command {
	var r leaseRequest
	var path string
	var pid int
	cmd := &cobra.Command{
		Use:   "acquire --path FILE",
		Short: "Acquire a lease and print its token",
		Long: `Acquire a lease and print its token, which renew and release need. The lease lasts for
--ttl, and longer if it is renewed. Exit code 4 means that another holder had it all the
time; the message has the holder, since and until.

Leases are acquired in the order tidy, queue, archive, then others by path. Under lease
run, a lease that comes before a held one is refused.`,
		Example: `  token=$(lockkeeper lease acquire --path .autonomous_runs/.locks/tidy.lock --owner tidy_up)
  lockkeeper lease acquire --path build.lock --ttl 10m --timeout 2m
  lockkeeper lease acquire --path build.lock --read --timeout 0`,
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
	cmd.Flags().IntVar(&pid, "pid", os.Getppid(), "the `process` that others see; its end does not release the lease")
	cmd.Flag("pid").DefValue = "the parent of this command"
	return cmd
}

func (p *program) leaseAcquire(ctx context.Context, l *lease.Lease, timeout time.Duration) error {
	waiting, stop := command.Interruptible(ctx)
	defer stop()
	if err := p.stack().Acquire(waiting, l, timeout); err != nil {
		return p.leaseFailed(command.Interrupted(waiting, err), "--timeout")
	}
	m := l.Metrics()
	err := p.Answer(map[string]any{"path": l.Path(), "token": l.Token(), "acquired_in_seconds": m.AcquiredIn.Seconds(), "attempts": m.Attempts}, "%s", l.Token())
	if err != nil { // the caller did not get the token
		_, releasing := l.Release(ctx)
		err = errors.Join(err, releasing)
	}
	return err
}

// leaseProof names a lease and its token. Under lease run the environment has both.
type leaseProof struct{ path, token string }

func (o *leaseProof) flags(f *pflag.FlagSet) {
	f.StringVar(&o.path, "path", "", "the lease `file`")
	f.StringVar(&o.token, "token", "", "the `token` that acquire printed")
}

// leases returns the named lease, or those of the environment.
func (o *leaseProof) leases(p *program, cmd *cobra.Command, opt lease.Options) (list []*lease.Lease, err error) {
	above := p.leasesAbove()
	if o.path == "" {
		if o.token != "" || len(above) == 0 {
			return nil, command.Usage(cmd, "needs the lease file with --path, and its token with --token")
		}
		for _, l := range above {
			list = append(list, lease.Resume(l.path, l.token, opt))
		}
		return list, nil
	}
	path, err := p.leasePath(cmd, o.path)
	if err != nil {
		return nil, err
	}
	token := o.token
	for _, l := range above {
		if token == "" && l.path == path {
			token = l.token
		}
	}
	if token == "" {
		return nil, command.Usage(cmd, "needs the token of "+o.path+", with --token")
	}
	return []*lease.Lease{lease.Resume(path, token, opt)}, nil
}

func (p *program) leaseRenewCommand() *cobra.Command {
	var o leaseProof
	var ttl term.Duration
	var phase string
	cmd := &cobra.Command{
		Use:   "renew [--path FILE --token TOKEN]",
		Short: "Renew a lease",
		Long: `Renew a lease for its original time, or for --ttl, from now on. If the lease is gone, or
another holder has it, nothing changes and the exit code is 1: stop the work under it.

A command under lease run can mark the phases of its work with --phase, which others see.
It finds its leases in the environment.`,
		Example: `  lockkeeper lease renew --path build.lock --token "$token"
  lockkeeper lease renew --phase "docs hygiene"   # under lease run`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			opt := lease.Defaults()
			opt.TTL = -1 // -1 leaves the TTL unchanged
			if cmd.Flags().Changed("ttl") {
				opt.TTL = time.Duration(ttl)
			}
			list, err := o.leases(p, cmd, opt)
			if err != nil {
				return err
			}
			for _, l := range list {
				if err := l.Phase(cmd.Context(), phase); err != nil {
					return p.leaseFailed(err, "")
				}
			}
			if !p.JSON {
				return nil
			}
			infos, err := inspected(list)
			if err != nil {
				return err
			}
			return p.PrintJSON(acts.OrEmpty(infos))
		},
	}
	o.flags(cmd.Flags())
	cmd.Flags().Lookup("path").Usage += " (default: the leases of lease run)"
	cmd.Flags().Var(&ttl, "ttl", "how long the lease lasts from now on (default: unchanged)")
	cmd.Flags().StringVar(&phase, "phase", "", "the `name` of the phase that starts")
	return cmd
}

func (p *program) leaseReleaseCommand() *cobra.Command {
	var o leaseProof
	cmd := &cobra.Command{
		Use:   "release --path FILE --token TOKEN",
		Short: "Release a lease",
		Long: `Release a lease. Only a file with the token is removed. If the lease is gone, or another
holder has it, that is not a failure: exit code 0 and a note.`,
		Example: `  lockkeeper lease release --path build.lock --token "$token"`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.path == "" {
				return command.Usage(cmd, "needs a lease file, with --path")
			}
			opt, note := lease.Defaults(), ""
			opt.Note = func(text string) { note = text } // the lease was held, but its file was gone
			list, err := o.leases(p, cmd, opt)
			if err != nil {
				return err
			}
			released, err := list[0].Release(cmd.Context())
			if err != nil {
				return err
			}
			if !released && note == "" {
				note = "nothing to release: the lease is not held with this token"
			} else {
				released = true
			}
			if p.JSON {
				return p.PrintJSON(map[string]any{"path": list[0].Path(), "released": released, "note": note})
			}
			if note != "" {
				fmt.Fprintln(p.Err, "note: "+term.Clean(note))
			}
			return nil
		},
	}
	o.flags(cmd.Flags())
	return cmd
}

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
runs, a timer renews the lease. The command can also call lockkeeper lease renew, with
--phase NAME to mark a phase of its work. Signals are passed on to the command, and its
exit code becomes the exit code. If the lease is lost, or cannot be renewed for two
thirds of its time, the command and everything it started are stopped. The exit code is
then 125.

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
	if _, left := errors.AsType[*process.LeftoversError](end.Err); left {
		return &command.ExitError{Code: command.ExitFailed, Err: fmt.Errorf("the lease is not released, and expires: %w", end.Err)}
	}
	if o.metrics {
		err = p.leaseCosts(leases)
	}
	released := errors.Join(err, held.Close(ctx))
	if lost != nil {
		return p.leaseFailed(&command.ExitError{Code: command.ExitLost, Err: fmt.Errorf("the command was stopped: %w", lost)}, "")
	}
	return end.Result("lease", nil, released)
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
	list, err := inspected(leases)
	for _, info := range list {
		for _, h := range info.Holders {
			fmt.Fprintf(p.Err, "lease %s: %s\n", term.Clean(info.Path), leaseMetrics(h))
		}
	}
	return err
}

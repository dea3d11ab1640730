package compat

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockkeeper/internal/compat/lease"
	"lockkeeper/internal/surface/cli/command"
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
The environment has its leases.`,
		Example: `  lockkeeper lease renew --path build.lock --token "$token"
  lockkeeper lease renew --phase "docs hygiene"   # under lease run`,
		Args: command.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			opt := lease.Defaults()
			opt.TTL = -1 // unchanged
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
			if p.JSON {
				return p.leaseInfos(list)
			}
			return nil
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
		Args:    command.Exactly(0, "no arguments"),
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

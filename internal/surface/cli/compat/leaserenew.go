package compat

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockkeeper/internal/compat/lease"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

// leaseProof names a lease and proves that it is the caller's. Under lease run it is
// known without being given.
type leaseProof struct{ path, token string }

func (o *leaseProof) flags(f *pflag.FlagSet) {
	f.StringVar(&o.path, "path", "", "the lease `file`")
	f.StringVar(&o.token, "token", "", "the `token` that acquire printed")
}

// leases are those that are meant.
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
		Long: `Give a lease its whole time again: from now on, for as long as it was taken for, or for
--ttl. When somebody else has it by now, or it is gone, nothing is changed, and the
exit code is 1: stop what it was for.

What lease run runs may mark the phases of its work with it; then the leases are known
from the environment. Others are shown the phase.`,
		Example: `  lockkeeper lease renew --path build.lock --token "$token"
  lockkeeper lease renew --phase "docs hygiene"   # under lease run`,
		Args: command.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			opt := lease.Defaults()
			opt.TTL = -1 // as it was
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
	cmd.Flags().Lookup("path").Usage += " (default: those that lease run holds for this command)"
	cmd.Flags().Var(&ttl, "ttl", "how long it lasts from now on (default: as before)")
	cmd.Flags().StringVar(&phase, "phase", "", "the `name` of the phase of the work that begins")
	return cmd
}

func (p *program) leaseReleaseCommand() *cobra.Command {
	var o leaseProof
	cmd := &cobra.Command{
		Use:   "release --path FILE --token TOKEN",
		Short: "Release a lease",
		Long: `Give a lease back. Only a file that carries the token is removed; where somebody
else has the lease by now, or nobody, there is nothing to give back, and that is
no failure.`,
		Example: `  lockkeeper lease release --path build.lock --token "$token"`,
		Args:    command.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.path == "" {
				return command.Usage(cmd, "names no lease file; give one with --path")
			}
			opt, note := lease.Defaults(), ""
			opt.Note = func(text string) { note = text } // it was held, and without its file
			list, err := o.leases(p, cmd, opt)
			if err != nil {
				return err
			}
			released, err := list[0].Release(cmd.Context())
			if err != nil {
				return err
			}
			if !released && note == "" {
				note = "nothing was given back: the lease is not, or no more, held with this token"
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

package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"lockkeeper/lease"
)

func (p *program) leaseStatusCommand() *cobra.Command {
	var path string
	grace := duration(lease.Defaults().Grace)
	cmd := &cobra.Command{
		Use:   "status --path FILE",
		Short: "Who holds a lease, since when and until when",
		Long: `Show who holds a lease, since when and until when, and from when on it may be broken.
Nothing is changed. Of a lease that was taken with Lockkeeper it also shows the phase
of the work, how long it took to get, and how often it was renewed.`,
		Example: `  lockkeeper lease status --path .autonomous_runs/.locks/tidy.lock
  lockkeeper lease status --path build.lock --json | jq -r .state`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			path, err := p.leasePath(cmd, path)
			if err != nil {
				return err
			}
			opt := lease.Defaults()
			opt.Grace = time.Duration(grace)
			info, err := lease.Look(path, opt)
			switch {
			case err != nil:
				return err
			case p.json:
				return p.printJSON(info)
			}
			p.showLease(info)
			return nil
		},
	}
	cmd.Flags().StringVar(&path, "path", "", "the lease `file`")
	cmd.Flags().Var(&grace, "grace", "how long after its expiry a lease is left alone")
	return cmd
}

// showLease is one lease in full.
func (p *program) showLease(info *lease.Info) {
	fmt.Fprintln(p.Out, clean(info.Path)+": "+string(info.State))
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(p.Out, "  %-14s %s\n", name, clean(value))
		}
	}
	at := func(name string, t *time.Time) {
		if t != nil {
			line(name, stamp(*t)+", "+until(t, p.Now()))
		}
	}
	line("holder", holderOf(info))
	at("since", info.CreatedAt)
	at("last renewed", info.RenewedAt)
	at("until", info.ExpiresAt)
	at("may be broken", info.StaleAt)
	for _, h := range info.Holders {
		line("phase", h.Phase)
		if info.Shared {
			line("reader", fmt.Sprintf("%s (pid %d), until %s", h.Owner, h.PID, stamp(h.ExpiresAt)))
		}
		line("metrics", leaseMetrics(h))
	}
	line("note", info.Fact)
}

func holderOf(info *lease.Info) string {
	if info.PID == 0 {
		return info.Owner
	}
	return fmt.Sprintf("%s (pid %d)", info.Owner, info.PID)
}

// leaseMetrics is what a lease cost its holder so far.
func leaseMetrics(h lease.Holder) string {
	return fmt.Sprintf("acquired in %s, renewed %s", h.AcquiredIn.Round(10*time.Microsecond), counted(h.Renewals, "time"))
}

func (p *program) leaseListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list [DIRECTORY]",
		Short: "All leases in a directory",
		Long: `List the leases in a directory, which is ` + lease.Dir + ` where none is
given: all files in it whose names end in .lock.`,
		Example: `  lockkeeper lease list
  lockkeeper lease list build/locks --json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage(cmd, fmt.Sprintf("needs one directory, got %d", len(args)))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := lease.Dir
			if len(args) == 1 {
				dir = args[0]
			}
			if !filepath.IsAbs(dir) {
				dir = filepath.Join(p.base(), dir)
			}
			list, err := lease.List(dir, lease.Defaults())
			switch {
			case err != nil:
				return err
			case p.json:
				return p.printJSON(listOf(list))
			case len(list) == 0:
				where := clean(dir)
				if _, missing := os.Stat(dir); errors.Is(missing, fs.ErrNotExist) {
					where += ", which is not there"
				}
				_, err = fmt.Fprintln(p.Out, "no leases in "+where)
				return err
			}
			t := &table{heads: []string{"LEASE", "STATE", "HOLDER", "HELD FOR", "EXPIRES", "NOTE"}, wide: 5, sentences: true}
			for _, info := range list {
				held := "-"
				if info.CreatedAt != nil {
					held = span(p.Now().Sub(*info.CreatedAt))
				}
				expires := "-"
				if info.ExpiresAt != nil {
					expires = until(info.ExpiresAt, p.Now())
				}
				t.add(clean(filepath.Base(info.Path)), string(info.State), clean(holderOf(info)), held, expires, clean(info.Fact))
			}
			t.print(p.Out, p.painter(p.Out))
			return nil
		},
	}
}

// leaseInfos answers with what leases are now.
func (p *program) leaseInfos(leases []*lease.Lease) error {
	var list []*lease.Info
	for _, l := range leases {
		info, err := lease.Look(l.Path(), lease.Defaults())
		if err != nil {
			return err
		}
		list = append(list, info)
	}
	return p.printJSON(listOf(list))
}

package compat

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"lockkeeper/internal/compat/lease"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

func (p *program) leaseStatusCommand() *cobra.Command {
	var path string
	grace := term.Duration(lease.Defaults().Grace)
	cmd := &cobra.Command{
		Use:   "status --path FILE",
		Short: "Show who holds a lease, since when and until when",
		Long: `Show who holds a lease, since when and until when, and when others may break it. For a
lease of Lockkeeper it also shows the phase of the work, how long acquiring took, and how
often it was renewed.`,
		Example: `  lockkeeper lease status --path .autonomous_runs/.locks/tidy.lock
  lockkeeper lease status --path build.lock --json | jq -r .state`,
		Args: command.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			path, err := p.leasePath(cmd, path)
			if err != nil {
				return err
			}
			opt := lease.Defaults()
			opt.Grace = time.Duration(grace)
			info, err := lease.Inspect(path, opt)
			switch {
			case err != nil:
				return err
			case p.JSON:
				return p.PrintJSON(info)
			}
			p.showLease(info)
			return nil
		},
	}
	cmd.Flags().StringVar(&path, "path", "", "the lease `file`")
	cmd.Flags().Var(&grace, "grace", "how long after its expiry a lease is respected")
	return cmd
}

// showLease prints one lease.
func (p *program) showLease(info *lease.Info) {
	fmt.Fprintln(p.Out, term.Clean(info.Path)+": "+string(info.State))
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(p.Out, "  %-14s %s\n", name, term.Clean(value))
		}
	}
	at := func(name string, t *time.Time) {
		if t != nil {
			line(name, term.Stamp(*t)+", "+term.Until(t, p.Now()))
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
			line("reader", fmt.Sprintf("%s (pid %d), until %s", h.Owner, h.PID, term.Stamp(h.ExpiresAt)))
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

// leaseMetrics returns the metrics of a lease.
func leaseMetrics(h lease.Holder) string {
	return fmt.Sprintf("acquired in %s, renewed %s", h.AcquiredIn.Round(10*time.Microsecond), term.Counted(h.Renewals, "time"))
}

func (p *program) leaseListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list [DIRECTORY]",
		Short: "List all leases in a directory",
		Long: `List the leases in a directory, by default ` + lease.Dir + `: all files whose
names end in .lock.`,
		Example: `  lockkeeper lease list
  lockkeeper lease list build/locks --json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return command.Usage(cmd, fmt.Sprintf("needs one directory, got %d", len(args)))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := lease.Dir
			if len(args) == 1 {
				dir = args[0]
			}
			dir = p.Path(dir)
			list, err := lease.List(dir, lease.Defaults())
			switch {
			case err != nil:
				return err
			case p.JSON:
				return p.PrintJSON(command.ListOf(list))
			case len(list) == 0:
				where := term.Clean(dir)
				if _, missing := os.Stat(dir); errors.Is(missing, fs.ErrNotExist) {
					where += ", which does not exist"
				}
				_, err = fmt.Fprintln(p.Out, "no leases in "+where)
				return err
			}
			t := &term.Table{Heads: []string{"LEASE", "STATE", "HOLDER", "HELD FOR", "EXPIRES", "NOTE"}, Wide: 5, Sentences: true}
			for _, info := range list {
				held := "-"
				if info.CreatedAt != nil {
					held = term.Span(p.Now().Sub(*info.CreatedAt))
				}
				expires := "-"
				if info.ExpiresAt != nil {
					expires = term.Until(info.ExpiresAt, p.Now())
				}
				t.Add(term.Clean(filepath.Base(info.Path)), string(info.State), term.Clean(holderOf(info)), held, expires, term.Clean(info.Fact))
			}
			t.Print(p.Out, p.Painter(p.Out))
			return nil
		},
	}
}

// leaseInfos prints the state of leases as JSON.
func (p *program) leaseInfos(leases []*lease.Lease) error {
	var list []*lease.Info
	for _, l := range leases {
		info, err := lease.Inspect(l.Path(), lease.Defaults())
		if err != nil {
			return err
		}
		list = append(list, info)
	}
	return p.PrintJSON(command.ListOf(list))
}

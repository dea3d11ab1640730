package compat

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockkeeper"
	"lockkeeper/internal/compat/lease"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

func (p *program) leaseCommand() *cobra.Command {
	return command.Group(&cobra.Command{
		Use:   "lease",
		Short: "Coordinate processes with a lease file",
		Long: `Coordinate processes with a lease file. It needs no lockkeeper init and no store, and
works together with other tools that use the format. The process that creates the file
holds the lease until it releases it. When the lease and a grace period have expired, the
next process may break it. docs/lease.md has the format and the rules.`,
		Example: `  lockkeeper lease run --path .autonomous_runs/.locks/tidy.lock -- python scripts/tidy/tidy_up.py
  token=$(lockkeeper lease acquire --path build.lock --owner nightly)
  lockkeeper lease list`,
	}, p.leaseAcquireCommand(), p.leaseRenewCommand(), p.leaseReleaseCommand(),
		p.leaseStatusCommand(), p.leaseListCommand(), p.leaseRunCommand())
}

type leaseRequest struct {
	owner               string
	ttl, grace, timeout term.Duration
	read                bool
}

func (r *leaseRequest) flags(f *pflag.FlagSet) {
	d := lease.Defaults()
	r.ttl, r.grace, r.timeout = term.Duration(d.TTL), term.Duration(d.Grace), term.Duration(lease.DefaultTimeout)
	f.StringVar(&r.owner, "owner", "", "the holder that others see (default: a callsign for this terminal)")
	f.Var(&r.ttl, "ttl", "how long the lease lasts without a renewal")
	f.Var(&r.grace, "grace", "how long after its expiry the lease of another holder is respected")
	f.Var(&r.timeout, "timeout", "how long to wait; 0: try once")
	f.BoolVar(&r.read, "read", false, "share the lease with other readers")
}

func (r *leaseRequest) options(p *program) (opt lease.Options, err error) {
	opt = lease.Defaults()
	opt.Owner, opt.TTL, opt.Grace, opt.Shared = r.owner, time.Duration(r.ttl), time.Duration(r.grace), r.read
	opt.Note = func(text string) { fmt.Fprintln(p.Err, "note: "+term.Clean(text)) }
	if opt.Owner == "" {
		opt.Owner, err = process.Holder()
	}
	return opt, err
}

// leasePath returns the canonical path of a lease file as typed.
func (p *program) leasePath(cmd *cobra.Command, path string) (string, error) {
	if path == "" {
		return "", command.Usage(cmd, "needs a lease file, with --path")
	}
	if strings.HasSuffix(path, "/") {
		return "", &lockkeeper.InputError{Field: "path", Value: path, Reason: "a directory; a lease is a file", Next: "give a file such as " + lease.Default}
	}
	path = p.Path(path)
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil { // the file may not exist yet
		path = filepath.Join(dir, filepath.Base(path))
	}
	return path, nil
}

// leasesVariable lists the leases that a command runs under, outermost first, one per line:
// token, space, path.
const leasesVariable = "LOCKKEEPER_LEASES"

// heldLease is a lease that a parent process holds for this command.
type heldLease struct{ token, path string }

func (p *program) leasesAbove() (list []heldLease) {
	text, _ := p.Lookup(leasesVariable)
	for line := range strings.Lines(text) {
		if token, path, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " "); ok {
			list = append(list, heldLease{token, path})
		}
	}
	return list
}

// stack returns a stack for the leases of this command, on top of those it runs under.
func (p *program) stack() *lease.Stack {
	s := &lease.Stack{}
	for _, l := range p.leasesAbove() {
		s.Inherited = append(s.Inherited, l.path)
	}
	return s
}

// leaseFailed returns the error of a command that did not get, or lost, its lease. retry is
// the start of the command that waits longer, up to the value of its flag.
func (p *program) leaseFailed(err error, retry string) error {
	var held *lease.HeldError
	var lost *lease.LostError
	facts := map[string]any{"error": lockkeeper.CodeOf(err), "message": err.Error()}
	switch {
	case errors.As(err, &held):
		held.AdviseToWait(fmt.Sprintf("%s %ds, which is long enough unless the holder renews it", retry, int(held.RetryTimeout().Seconds())))
		facts["message"], facts["path"], facts["owner"], facts["held_by"] = err.Error(), held.Path, held.Owner, held.By
		facts["waited_seconds"], facts["attempts"], facts["next"] = held.Waited.Seconds(), held.Attempts, held.Next
	case errors.As(err, &lost):
		facts["path"], facts["now"] = lost.Path, lost.Now
	default:
		return err
	}
	if !p.JSON {
		return err
	}
	return cmp.Or(p.PrintJSON(facts), silently(err))
}

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
		RunE: func(cmd *cobra.Command, _ []string) error {
			path, err := p.leasePath(cmd, path)
			if err != nil {
				return err
			}
			opt := lease.Defaults()
			opt.Grace = time.Duration(grace)
			info, err := lease.Inspect(path, opt)
			if err != nil {
				return err
			}
			return p.Show(info, func() { p.showLease(info) })
		},
	}
	cmd.Flags().StringVar(&path, "path", "", "the lease `file`")
	cmd.Flags().Var(&grace, "grace", "how long after its expiry a lease is respected")
	return cmd
}

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
	line("note", lockkeeper.LocalTimes(info.Fact))
}

func holderOf(info *lease.Info) string {
	if info.PID == 0 {
		return info.Owner
	}
	return fmt.Sprintf("%s (pid %d)", info.Owner, info.PID)
}

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
				return p.PrintJSON(acts.OrEmpty(list))
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
				t.Add(term.Clean(filepath.Base(info.Path)), string(info.State), term.Clean(holderOf(info)), held, expires, term.Clean(lockkeeper.LocalTimes(info.Fact)))
			}
			t.Print(p.Out, p.Painter(p.Out))
			return nil
		},
	}
}

func inspected(leases []*lease.Lease) (list []*lease.Info, err error) {
	for _, l := range leases {
		info, err := lease.Inspect(l.Path(), lease.Defaults())
		if err != nil {
			return nil, err
		}
		list = append(list, info)
	}
	return list, nil
}

package compat

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockkeeper"
	"lockkeeper/internal/compat/lease"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

func (p *program) leaseCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lease",
		Short: "Coordinate processes with a lease file",
		Long: `Keep processes apart by a lease file, which needs no root and no store, and which
tools that know nothing of Lockkeeper may contend for: whoever made the file holds
the lease, until it releases it, or until its time and a grace period are past and
the next one breaks it. docs/lease.md has the format and the rules.`,
		Example: `  lockkeeper lease run --path .autonomous_runs/.locks/tidy.lock -- python scripts/tidy/tidy_up.py
  token=$(lockkeeper lease acquire --path build.lock --owner nightly)
  lockkeeper lease list`,
		Args: command.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.leaseAcquireCommand(), p.leaseRenewCommand(), p.leaseReleaseCommand(),
		p.leaseStatusCommand(), p.leaseListCommand(), p.leaseRunCommand())
	return cmd
}

// leaseRequest is what acquire and run are told to ask for.
type leaseRequest struct {
	owner               string
	ttl, grace, timeout term.Duration
	read                bool
}

func (r *leaseRequest) flags(f *pflag.FlagSet) {
	d := lease.Defaults()
	r.ttl, r.grace, r.timeout = term.Duration(d.TTL), term.Duration(d.Grace), term.Duration(lease.DefaultTimeout)
	f.StringVar(&r.owner, "owner", "", "who holds it, as others will see it (default: a callsign for this terminal)")
	f.Var(&r.ttl, "ttl", "how long it lasts without being renewed")
	f.Var(&r.grace, "grace", "how long after its expiry somebody else's lease is left alone")
	f.Var(&r.timeout, "timeout", "how long to wait for it; 0: ask once")
	f.BoolVar(&r.read, "read", false, "share it with others who only read")
}

// options are what the lease is asked for with.
func (r *leaseRequest) options(p *program) (opt lease.Options, err error) {
	opt = lease.Defaults()
	opt.Owner, opt.TTL, opt.Grace, opt.Shared = r.owner, time.Duration(r.ttl), time.Duration(r.grace), r.read
	opt.Note = func(text string) { fmt.Fprintln(p.Err, "note: "+term.Clean(text)) }
	if opt.Owner == "" {
		opt.Owner, err = process.Holder()
	}
	return opt, err
}

// leasePath is the one name of a lease file as it was typed.
func (p *program) leasePath(cmd *cobra.Command, path string) (string, error) {
	if path == "" {
		return "", command.Usage(cmd, "names no lease file; give one with --path")
	}
	if strings.HasSuffix(path, "/") {
		return "", &lockkeeper.InputError{Field: "path", Value: path, Reason: "a directory, and a lease is a file", Next: "give a file such as " + lease.Default}
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(p.Base(), path)
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil { // it need not exist yet
		path = filepath.Join(dir, filepath.Base(path))
	}
	return path, nil
}

// leasesVariable lists the leases that something runs under, outermost first, a line
// each: token, space, path.
const leasesVariable = "LOCKKEEPER_LEASES"

// heldLease is a lease that whoever started this command holds for it.
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

// stack is for the leases that this command takes, after those that it runs under.
func (p *program) stack() *lease.Stack {
	s := &lease.Stack{}
	for _, l := range p.leasesAbove() {
		s.Inherited = append(s.Inherited, l.path)
	}
	return s
}

// leaseFailed is how a command ends that has no lease, or not any more. Retry is the
// command with which one waits for long enough, up to the value of its option.
func (p *program) leaseFailed(err error, retry string) error {
	var held *lease.HeldError
	var lost *lease.LostError
	facts := map[string]any{"error": lockkeeper.CodeOf(err), "message": err.Error()}
	switch {
	case errors.As(err, &held):
		held.AdviseToWait(fmt.Sprintf("%s %ds waits for long enough, unless its holder renews it", retry, int(held.RetryTimeout().Seconds())))
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

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
	return command.Group(&cobra.Command{
		Use:   "lease",
		Short: "Coordinate processes with a lease file",
		Long: `Coordinate processes with a lease file. It needs no lockkeeper init and no store, and
works together with other tools that use the format. The process that creates the file
holds the lease until it releases it, or until the lease and a grace period have expired
and the next process breaks it. docs/lease.md has the format and the rules.`,
		Example: `  lockkeeper lease run --path .autonomous_runs/.locks/tidy.lock -- python scripts/tidy/tidy_up.py
  token=$(lockkeeper lease acquire --path build.lock --owner nightly)
  lockkeeper lease list`,
	}, p.leaseAcquireCommand(), p.leaseRenewCommand(), p.leaseReleaseCommand(),
		p.leaseStatusCommand(), p.leaseListCommand(), p.leaseRunCommand())
}

// leaseRequest has the options of acquire and run.
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

// options returns the options of the lease.
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
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil { // it may not exist yet
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

package compat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/internal/compat/lease"
	"lockkeeper/internal/compat/tidy"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

type tidyOptions struct {
	execute, dry, without, read bool
	phases                      []string
	timeout, ttl                term.Duration
}

func (p *program) tidyCommand() *cobra.Command {
	o := tidyOptions{timeout: term.Duration(lease.DefaultTimeout), ttl: term.Duration(lease.Defaults().TTL)}
	cmd := &cobra.Command{
		Use:   "tidy [--execute]",
		Short: "Move stray files to where they belong",
		Long: `Move files that lie about to where they belong, in three phases: documents, logs and
left-overs in the root (root), what is outdated in docs (docs), and what was put into
archive as it came (archive). Without --execute nothing is moved, and it shows what
would be.

A run holds the lease ` + lease.Default + `, also a dry run, and
renews it between the phases. Exit code 4 means that another one had it all the time.
Runs of single phases share it with each other, and each phase with nobody. A dry run
with --read does without it, under a lease that those who only read share.

What is to be moved is in ` + tidy.QueueFile + ` until it is moved. Files are
moved through the gate, a phase as one unit, under locks on all of them; what somebody
works on, and what the gate refuses, stays in the queue. lockkeeper undo takes a
phase back.`,
		Example: `  lockkeeper tidy
  lockkeeper tidy --execute
  lockkeeper tidy --execute --phase archive   # beside others that do other phases
  lockkeeper tidy --read                      # beside a run that moves, and other dry runs`,
		Args: command.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.execute && o.dry {
				return command.Usage(cmd, "--execute and --dry-run exclude each other")
			}
			if o.read && o.execute {
				return command.Usage(cmd, "--read is for a dry run, which only reads")
			}
			return p.With(cmd.Context(), func(a *project.Project) error { return p.tidy(cmd, a, o) })
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.execute, "execute", false, "move the files")
	f.BoolVar(&o.dry, "dry-run", false, "show what would be moved, and change nothing (default)")
	f.StringArrayVar(&o.phases, "phase", nil, "only this `phase`: "+tidy.PhaseNames()+"; repeatable")
	f.Var(&o.timeout, "lease-timeout", "how long to wait for the lease")
	f.Var(&o.ttl, "lease-ttl", "how long the lease lasts without being renewed")
	f.BoolVar(&o.without, "no-lease", false, "run without the lease: unsafe, another run may go on at the same time")
	f.BoolVar(&o.read, "read", false, "of a dry run: report beside other dry runs, and beside a run that moves files")
	return cmd
}

func (p *program) tidy(cmd *cobra.Command, a *project.Project, o tidyOptions) error {
	owner, err := process.Holder()
	if err != nil {
		return err
	}
	g, err := a.Gate()
	if err != nil {
		return err
	}
	if o.without {
		fmt.Fprintln(p.Err, "warning: --no-lease: no lease is taken, and another run may go on at the same time")
	}
	ctx, stop := command.Interruptible(cmd.Context())
	defer stop()
	remedy := "" // for what the gate may not write
	report, err := tidy.Run(ctx, tidy.Options{
		Root: a.Root.Dir(), Owner: "tidy " + owner, Execute: o.execute, Only: o.phases, NoLease: o.without, Read: o.read,
		Timeout: time.Duration(o.timeout), TTL: time.Duration(o.ttl), Inherited: p.stack().Inherited,
		Check: func(ctx context.Context, m tidy.Transfer) string {
			why, next := unwritable(g.Check(ctx, nil, m.From, m.To))
			remedy = cmp.Or(remedy, next)
			return why
		},
		Land: func(ctx context.Context, reason string, moves []tidy.Transfer) (uint64, error) {
			return p.landMoves(cmd, a, g, reason, moves)
		},
		Note: func(text string) { fmt.Fprintln(p.Err, "note: "+term.Clean(text)) },
	})
	var held *lease.HeldError
	var wrong *lockkeeper.InputError
	switch {
	case errors.As(err, &wrong): // nothing was begun
		return err
	case errors.As(err, &held):
		return p.leaseFailed(command.Interrupted(ctx, err), "lockkeeper tidy --lease-timeout")
	case err != nil:
		err = command.Interrupted(ctx, err)
	default:
		err = tidied(report, remedy)
	}
	if !p.JSON {
		p.showTidied(report, remedy)
		return err
	}
	answer := struct {
		*tidy.Report
		Error   lockkeeper.Code `json:"error,omitempty"`
		Message string          `json:"message,omitempty"`
	}{Report: report}
	if err != nil {
		answer.Error, answer.Message = lockkeeper.CodeOf(err), err.Error()
		err = silently(err)
	}
	return cmp.Or(p.PrintJSON(answer), err)
}

// silently ends the program as err would, which has been told already.
func silently(err error) error {
	quiet := &command.ExitError{Code: command.ExitCode(err)}
	if coded := (*command.ExitError)(nil); errors.As(err, &coded) {
		quiet.Signal = coded.Signal
	}
	return quiet
}

// landMoves moves files as one unit, under locks on all of them.
func (p *program) landMoves(cmd *cobra.Command, a *project.Project, g *gate.Gate, reason string, moves []tidy.Transfer) (landing uint64, err error) {
	var paths []string
	var changes []gate.Change
	for _, m := range moves {
		paths = append(paths, m.From, m.To)
		changes = append(changes, gate.Rename(m.From, m.To)...)
	}
	err = p.Under(cmd, a, reason, command.OwnLock{}, paths, func(ctx context.Context, grant *lockkeeper.Grant) error {
		l, err := g.Commit(ctx, grant, changes)
		if err == nil && l != nil {
			landing = l.Seq
		}
		return err
	})
	return landing, err
}

// unwritable is why paths cannot be written even under locks that are free: they are
// not the gate's to write, and then what helps, or somebody works on them. That no lock
// is held yet is no reason.
func unwritable(checks []error) (why, next string) {
	for _, err := range checks {
		var v *lockkeeper.LockViolationError
		switch {
		case err == nil:
		case !errors.As(err, &v):
			return err.Error(), ""
		case v.HeldBy != nil:
			return v.Path + " is held by " + v.HeldBy.Holder + " since " + term.Stamp(v.HeldBy.AcquiredAt), ""
		case v.Check != "grant":
			return v.Path + ": " + v.Reason, v.Next
		}
	}
	return "", ""
}

// tidied is the failure of a run that could not move everything; nil when it did.
func tidied(r *tidy.Report, remedy string) error {
	left := 0
	for _, ph := range r.Phases {
		for _, m := range ph.Moves {
			if r.Executed && !m.Moved {
				left++
			}
		}
	}
	if left == 0 {
		return nil
	}
	return &command.ExitError{Code: command.ExitFailed, Err: fmt.Errorf("%s could not be moved, and %s in %s; next: %s", term.Counted(left, "file"), term.Plural(left, "stays", "stay"), tidy.QueueFile, cmp.Or(remedy, "see why above, and run it again"))}
}

func (p *program) showTidied(r *tidy.Report, remedy string) {
	answer := map[bool]string{true: "True", false: "False"}
	fmt.Fprintln(p.Out, "Lease acquired: "+answer[r.Leased])
	moved, planned := 0, 0
	for _, ph := range r.Phases {
		fmt.Fprintf(p.Out, "Phase %d: %s\n", ph.Number, ph.Title)
		if len(ph.Moves) == 0 {
			fmt.Fprintln(p.Out, map[bool]string{true: "  failed, and moved nothing", false: "  nothing to move"}[ph.Failed])
		}
		for _, m := range ph.Moves {
			what := "would move"
			switch {
			case m.Moved:
				what = "moved"
				moved++
			case m.Problem != "":
				what = "left"
			default:
				planned++
			}
			fmt.Fprintf(p.Out, "  %-10s  %s -> %s  (%s)\n", what, term.Clean(m.From), term.Clean(m.To), term.Clean(cmp.Or(m.Problem, m.Reason)))
		}
		if ph.Landing != 0 {
			fmt.Fprintf(p.Out, "  landing %d; lockkeeper undo %d undoes it\n", ph.Landing, ph.Landing)
		}
	}
	if r.Leased {
		fmt.Fprintf(p.Err, "lease: acquired in %s, renewed %s\n", r.Lease.AcquiredIn.Round(10*time.Microsecond), term.Counted(r.Lease.Renewals, "time"))
	}
	if r.Executed {
		fmt.Fprintf(p.Out, "%s moved\n", term.Counted(moved, "file"))
		return
	}
	fmt.Fprintf(p.Out, "dry run: %s would be moved, and nothing was changed\n", term.Counted(planned, "file"))
	switch {
	case planned > 0:
		p.Advise("lockkeeper tidy --execute")
	case remedy != "":
		p.Advise(remedy)
	}
}

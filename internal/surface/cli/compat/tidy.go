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
		Long: `Move stray files to where they belong, in four phases: documents, logs and leftovers in
the root (root), outdated documents (docs), unsorted files in archive (archive), and old
runs in .autonomous_runs (runs). Without --execute it only shows what it would move.

Every run, also a dry run, holds the lease ` + lease.Default + ` and
renews it between the phases. Exit code 4 means that another run had it the whole time. Runs
of different single phases can share it. A dry run with --read does not need it; it holds
a lease that readers share.

Files to move are listed in ` + tidy.QueueFile + ` until they are moved. They are
moved through the gate under locks, each phase as one landing. Files that another holder
has locked, or that the gate refuses, stay in the queue. lockkeeper undo undoes a phase.`,
		Example: `  lockkeeper tidy
  lockkeeper tidy --execute
  lockkeeper tidy --execute --phase archive   # while other runs do other phases
  lockkeeper tidy --read                      # while another run moves files`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.execute && o.dry {
				return command.Usage(cmd, "--execute and --dry-run exclude each other")
			}
			if o.read && o.execute {
				return command.Usage(cmd, "--read is only for a dry run")
			}
			return p.With(cmd.Context(), func(a *project.Project) error { return p.tidy(cmd, a, o) })
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.execute, "execute", false, "move the files")
	f.BoolVar(&o.dry, "dry-run", false, "show what would move, and change nothing (default)")
	f.StringArrayVar(&o.phases, "phase", nil, "only this `phase`: "+tidy.PhaseNames()+"; repeatable")
	f.Var(&o.timeout, "lease-timeout", "how long to wait for the lease")
	f.Var(&o.ttl, "lease-ttl", "how long the lease lasts without a renewal")
	f.BoolVar(&o.without, "no-lease", false, "run without the lease; unsafe, because another run may be active")
	f.BoolVar(&o.read, "read", false, "for a dry run: do not wait for other runs")
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
		fmt.Fprintln(p.Err, "warning: --no-lease: no lease is acquired, so another run may be active at the same time")
	}
	ctx, stop := command.Interruptible(cmd.Context())
	defer stop()
	remedy := "" // next step for files that the gate may not write
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
	case errors.As(err, &wrong): // the run did not start
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

// silently returns an error that ends the program like err, which was printed already.
func silently(err error) error {
	quiet := &command.ExitError{Code: command.ExitCode(err)}
	if coded, ok := errors.AsType[*command.ExitError](err); ok {
		quiet.Signal = coded.Signal
	}
	return quiet
}

// landMoves moves files as one landing, under locks on all of them.
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

// unwritable returns why paths cannot be written, and the next step: the gate may not write
// them, or another holder has them. A missing lock is no reason, because it is acquired later.
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

// tidied returns an error if a run could not move everything.
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
	return &command.ExitError{Code: command.ExitFailed, Err: lockkeeper.WithNext(fmt.Errorf("%s could not be moved, and %s in %s", term.Counted(left, "file"), term.Plural(left, "stays", "stay"), tidy.QueueFile), cmp.Or(remedy, "fix the causes above, then run it again"))}
}

func (p *program) showTidied(r *tidy.Report, remedy string) {
	answer := map[bool]string{true: "True", false: "False"}
	fmt.Fprintln(p.Out, "Lease acquired: "+answer[r.Leased])
	moved, planned := 0, 0
	for _, ph := range r.Phases {
		fmt.Fprintf(p.Out, "Phase %d: %s\n", ph.Number, ph.Title)
		if len(ph.Moves) == 0 {
			fmt.Fprintln(p.Out, map[bool]string{true: "  failed; nothing moved", false: "  nothing to move"}[ph.Failed])
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
			fmt.Fprintf(p.Out, "  %-10s  %s -> %s  (%s)\n", what, term.Clean(m.From), term.Clean(m.To), term.Clean(lockkeeper.LocalTimes(cmp.Or(m.Problem, m.Reason))))
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
	fmt.Fprintf(p.Out, "dry run: %s would be moved; nothing changed\n", term.Counted(planned, "file"))
	switch {
	case planned > 0:
		p.Advise("lockkeeper tidy --execute")
	case remedy != "":
		p.Advise(remedy)
	}
}

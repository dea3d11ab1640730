package compat

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/compat/resource"
	"lockkeeper/internal/encoding/shellword"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/project"
	"lockkeeper/internal/project/config"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/locks"
	"lockkeeper/internal/surface/cli/term"
)

type opOptions struct {
	args           resource.Args
	approve        bool
	holder, reason string
	wait           term.Duration
}

func (p *program) opCommand() *cobra.Command {
	var o opOptions
	cmd := &cobra.Command{
		Use:   "op [NAME] [-- COMMAND…]",
		Short: "Run a named operation under the locks it needs",
		Long: `Show which locks an operation needs, in the order of acquiring, and why. Without a name,
list the operations of lockkeeper.yaml. With a command after --, acquire all the locks at
once, run the command as lockkeeper lock exec does, and release them. The exit codes are
those of lock exec.

An unknown or ambiguous operation is refused without acquiring a lock; the message says
what is ambiguous. If an operation needs an approval, --approve asks for it on a terminal
before it acquires any lock. Agents cannot approve.

With several projects, write a map as p1/m2, and a sketch likewise.`,
		Example: `  lockkeeper op
  lockkeeper op change-map-objects --project p1 --map m2 --objects 1001   # from init fole
  lockkeeper op generate-tiles --project p1 --map m2 --wait 1m -- ./bin/tiles m2
  lockkeeper op reassign-features --project p1 --sketch m1/s1 --sketch m2/s4 -- ./bin/reassign
  lockkeeper op change-by-chg --of Chapter_05                             # from init book`,
		Args: func(cmd *cobra.Command, args []string) error { return p.opWords(cmd, args) },
		RunE: func(cmd *cobra.Command, args []string) error { return p.op(cmd, o, args) },
	}
	f := cmd.Flags()
	f.StringArrayVar(&o.args.Project, "project", nil, "the `id` of a project; repeatable")
	f.StringArrayVar(&o.args.Map, "map", nil, "the `id` of a map; repeatable")
	f.StringArrayVar(&o.args.Sketch, "sketch", nil, "the `id` of a sketch; repeatable")
	f.IntVar(&o.args.Objects, "objects", 0, "how many objects change")
	f.StringArrayVar(&o.args.Of, "of", nil, "the `name` of a resource, or the number of a chapter; repeatable")
	f.BoolVar(&o.approve, "approve", false, "ask for the approval that the operation needs, on a terminal")
	f.StringVar(&o.holder, "holder", "", "the holder that others see (default: a callsign for this terminal)")
	f.StringVar(&o.reason, "reason", "", "why you need the locks, shown to others (default: the operation)")
	f.Var(&o.wait, "wait", "how long to wait if blocked: 5m if no time follows (default: do not wait)")
	return cmd
}

// opWords accepts the name of an operation, and a command after --.
func (p *program) opWords(cmd *cobra.Command, args []string) error {
	own := cmd.ArgsLenAtDash()
	switch {
	case own < 0 && len(args) <= 1, own == 1 && len(args) > 1:
		return nil
	case own == 1:
		return command.Usage(cmd, "needs a command to run, after --")
	case own == 0:
		return command.Usage(cmd, "needs an operation before --")
	}
	return command.Usage(cmd, "takes one operation, and a command after --")
}

func (p *program) op(cmd *cobra.Command, o opOptions, args []string) error {
	if len(args) <= 1 { // without a command, op only reads the table
		set, err := p.resources()
		switch {
		case err != nil:
			return err
		case len(args) == 0:
			return p.listOperations(set)
		}
		need, err := set.Operation(args[0], o.args)
		if err != nil {
			return err
		}
		return p.showNeed(need)
	}
	return p.With(cmd.Context(), func(a *project.Project) error { return p.runOperation(cmd.Context(), a, o, args[0], args[1:]) })
}

func (p *program) resources() (*resource.Set, error) {
	c, err := project.LoadConfig(p.Settings())
	if err != nil {
		return nil, err
	}
	return resource.Of(c)
}

func (p *program) listOperations(set *resource.Set) error {
	list := set.Operations()
	if p.JSON {
		return p.PrintJSON(list)
	}
	if len(list) == 0 {
		fmt.Fprintln(p.Out, config.FileName+" has no operations")
		p.Advise("lockkeeper init book or lockkeeper init fole, which write a table; or add your own under operations")
		return nil
	}
	t := &term.Table{Heads: []string{"OPERATION", "OBJECTS", "NEEDS", "ABOUT"}, Wide: 3, Sentences: true}
	for _, op := range list {
		needs := op.Needs
		if len(needs) == 0 {
			needs = []string{"no lock"}
		}
		if op.Approval {
			needs = append(needs, "approval")
		}
		about := op.About
		if op.Prompt > 0 {
			about = fmt.Sprintf("Prompt %d: %s", op.Prompt, about)
		}
		t.Add(op.Name, op.Objects, strings.Join(needs, "; "), term.Clean(about))
	}
	t.Print(p.Out, p.Painter(p.Out))
	return nil
}

func (p *program) showNeed(need resource.Need) error {
	return p.Show(need, func() {
		fmt.Fprintf(p.Out, "%s: %s\n", need.Operation, term.Clean(need.Why))
		for i, l := range need.Locks {
			fmt.Fprintf(p.Out, "%3d  %-5s  %s\n", i+1, l.Mode, term.Clean(targetOf(l)))
		}
		switch {
		case len(need.Locks) == 0:
			fmt.Fprintln(p.Out, "  it needs no lock")
		case need.Approval:
			fmt.Fprintln(p.Out, "  and approval: --approve, typed by a person on a terminal")
		}
	})
}

// targetOf returns the target of a lock, for people.
func targetOf(l lockkeeper.Lock) string {
	switch l.Kind {
	case lockkeeper.Tree:
		return l.Path + " and all below it"
	case lockkeeper.Dir:
		return l.Path + "/"
	}
	return l.Path
}

// runOperation acquires all locks of an operation at once, and runs a command under them. It
// asks for approval first, so that no lock is held during the question.
func (p *program) runOperation(ctx context.Context, a *project.Project, o opOptions, name string, argv []string) error {
	op, err := acts.FindOperation(a, name, o.args, argv)
	if err != nil {
		return err
	}
	need := op.Need
	req := lockkeeper.Request{Holder: o.holder, Policy: acts.DataPolicy, Locks: op.Locks, Metadata: map[string]string{"operation": need.Operation, "reason": o.reason}}
	if o.reason == "" {
		req.Metadata["reason"] = need.Operation
	}
	if req.Holder == "" {
		if req.Holder, err = process.Holder(); err != nil {
			return err
		}
	}
	if need.Approval {
		if err := p.approval(o, need, argv); err != nil {
			return err
		}
		by := p.Person()
		if err := conduct.RecordDecision(ctx, a, by, "approved "+need.Operation+" on "+strings.Join(need.Resources, ", ")); err != nil {
			return err
		}
		req.Metadata["approved_by"] = by.Name
	}
	return locks.ExecUnder(ctx, p.Program, a, req, time.Duration(o.wait), argv)
}

func (p *program) approval(o opOptions, need resource.Need, argv []string) error {
	act := "op " + need.Operation
	if err := p.NoAgent(act); err != nil {
		return err
	}
	if !o.approve {
		return &lockkeeper.RefusedError{Act: act, Reason: "it needs approval", Next: "run it again with --approve, on a terminal"}
	}
	targets := term.Join(need.Locks, func(l lockkeeper.Lock) string { return l.Mode.String() + " " + targetOf(l) })
	facts := fmt.Sprintf("%s.\nIt runs %s, with %s.", term.Clean(need.Why), term.Clean(shellword.Join(argv)), term.Clean(targets))
	return p.Confirm(act, facts, strings.Join(need.Resources, " "))
}

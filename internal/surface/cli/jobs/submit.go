package jobs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/encoding/shellword"
	"lockkeeper/internal/job"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/sched"
)

type submitOptions struct {
	command.Targets
	order sched.ItemSpec
}

func (p *program) submitCommand() *cobra.Command {
	var o submitOptions
	cmd := &cobra.Command{
		Use:   "submit -- COMMAND…",
		Short: "Queue a command and print the id of its item",
		Long: `Queue a command and print the id of its item. A worker (lockkeeper job work) starts it
when it can acquire all its locks at once, a slot of each of its pools is free, and the
items it comes after are completed. It runs in the directory where you submitted it, with
standard input closed, and edits its locked files in place.

The command line is stored and visible to everybody who can see the queue. Pass secrets
through files or the environment of the worker. You choose the key. A second item with
the same key is refused, so a script that submits can run again.

A directory named for writing fails with exit code 6. The item is kept as failed and
never runs.

Phases, first to start: ` + sched.PhaseNames() + `.`,
		Example: `  lockkeeper job submit --write app/user.rb -- claude -p "fix the user model"
  lockkeeper job submit --read . --pool test --phase test --after j12 -- make test
  lockkeeper job submit --project shop --class cpu --key nightly-index -- ./bin/index`,
		Args: p.AfterDashes,
		RunE: func(cmd *cobra.Command, argv []string) error {
			return p.WithQueue(cmd.Context(), p.Settings(), func(a *project.Project, q *job.Queue) error {
				return p.submit(cmd, a, q, o, argv)
			})
		},
	}
	f := cmd.Flags()
	o.Targets.Flags(f)
	f.StringVar(&o.order.Workflow, "name", "", "what it is called (default: the key, or the beginning of the command line)")
	f.StringVar(&o.order.Key, "key", "", "your own `name` for it, which no second item may have")
	f.StringVar(&o.order.Project, "project", "", "the `project` it belongs to: projects take turns, and each has its caps")
	f.StringVar(&o.order.Class, "class", "", "`cpu` or io: what it is heavy on")
	f.BoolVar(&o.order.Map, "map", false, "it is one of many map jobs of its project, which have a cap of their own")
	f.StringVar(&o.order.Phase, "phase", sched.DefaultPhase, "the `phase` it is in, which decides who comes first")
	f.StringArrayVar(&o.order.Pools, "pool", nil, "a `pool` it needs a slot of: "+sched.PoolAgent+", "+sched.PoolAPI+" or "+sched.PoolTest+"; repeatable")
	f.StringArrayVar(&o.order.After, "after", nil, "an `item`, by id or key, that has to be completed first; repeatable")
	f.StringVar(&o.order.Root, "root", "", "the `root` it works on: only nodes that reach it run it (default, on several nodes: the one this node reaches)")
	f.StringVar(&o.order.Policy, "policy", "", "the rules of its grant: "+lockkeeper.PolicyNames(lockkeeper.Policies())+" (default "+lockkeeper.DefaultPolicy+")")
	f.SetInterspersed(false) // what follows the command's name is its own
	return cmd
}

func (p *program) submit(cmd *cobra.Command, a *project.Project, q *job.Queue, o submitOptions, argv []string) error {
	order, err := o.build(p, cmd, a, argv)
	if err != nil {
		return err
	}
	items, err := q.Enqueue(cmd.Context(), order)
	if err != nil {
		return err
	}
	it := items[0]
	if p.JSON {
		err = p.PrintJSON(it)
	} else {
		_, err = fmt.Fprintln(p.Out, it.ID)
	}
	switch {
	case err != nil:
		return err
	case it.Failure != nil && p.JSON:
		return &command.ExitError{Code: command.ExitOverLock}
	case it.Failure != nil:
		p.Say("item " + it.ID + " failed and will not run: " + it.Failure.Reason)
		return &command.ExitError{Code: command.ExitOverLock}
	}
	return p.remark(cmd.Context(), q, it)
}

// build makes the order with its paths resolved, once all that can be checked here is.
func (o *submitOptions) build(p *program, cmd *cobra.Command, a *project.Project, argv []string) (order sched.ItemSpec, err error) {
	order = o.order
	order.Command, order.Job = argv, true
	order.Workflow = cmp.Or(order.Workflow, term.Ellipsis(term.Clean(cmp.Or(order.Key, shellword.Join(argv))), NameWidth))
	if order.Key == "" && cmd.Flags().Changed("key") {
		return order, &lockkeeper.InputError{Field: "key", Reason: "empty", Next: "give the item a key, or leave --key out"}
	}
	if i := slices.IndexFunc(argv, func(arg string) bool { return !utf8.ValidString(arg) }); i >= 0 {
		return order, &lockkeeper.InputError{Field: "command", Value: argv[i], Reason: "not UTF-8 text, and it is stored as text", Next: "give such bytes through a file"}
	}
	if order.Locks, err = o.Resolve(p.Program, a); err != nil {
		return order, err
	}
	if len(order.Locks) == 0 && slices.ContainsFunc([]string{"read-from", "write-from"}, cmd.Flags().Changed) {
		return order, command.Usage(cmd, "names no path, for its lists are empty; nothing was queued")
	}
	p.Notes(a, order.Locks)
	if order.Root, err = a.Config.RootOf(order.Root); err != nil {
		return order, err
	}
	if order.Dir, err = a.Dir(); err != nil {
		return order, err
	}
	if err := job.CheckCommand(a, argv[0]); err != nil {
		return order, err
	}
	order.By = p.Actor()
	return order, nil
}

// remark tells what will keep an item from starting: that what it comes after has
// failed, or, to a person, that nobody is there to run it.
func (p *program) remark(ctx context.Context, q *job.Queue, it *lockkeeper.Item) error {
	if p.JSON {
		return nil
	}
	failed, err := q.FailedBefore(ctx, it)
	if err != nil {
		return err
	}
	if failed != nil {
		fmt.Fprintf(p.Err, "note: %s does not start before %s (%s) is completed, which failed: %s\n", it.ID, failed.ID, Title(failed), noteOf(failed))
		p.Advise("lockkeeper job retry " + failed.ID)
		return nil
	}
	if !term.IsTerminal(p.Err) {
		return nil
	}
	workers, err := q.Workers(ctx)
	if err == nil && len(workers) == 0 {
		p.Advise(startWorker)
	}
	return err
}

// startWorker is the next step where no worker is at work.
const startWorker = "lockkeeper job work --slots 4, for no worker is at work"

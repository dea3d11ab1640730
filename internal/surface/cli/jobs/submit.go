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
	"lockkeeper/internal/flow"
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

Phases, first to start: ` + sched.Phases(flow.QueueOrder()).String() + `.`,
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
	f.StringVar(&o.order.Workflow, "name", "", "the name of the item (default: the key, or the start of the command line)")
	f.StringVar(&o.order.Key, "key", "", "a unique `name` of your own")
	f.StringVar(&o.order.Project, "project", "", "the `project` of the item: projects take turns, and each has limits")
	f.StringVar(&o.order.Class, "class", "", "`cpu` or io: what the command uses most")
	f.BoolVar(&o.order.Map, "map", false, "a map job, which has its own limit in its project")
	f.StringVar(&o.order.Phase, "phase", sched.DefaultPhase, "the `phase` of the item, which sets its priority")
	f.StringArrayVar(&o.order.Pools, "pool", nil, "a `pool` whose slot it needs: "+sched.PoolAgent+", "+sched.PoolAPI+" or "+sched.PoolTest+"; repeatable")
	f.StringArrayVar(&o.order.After, "after", nil, "an `item`, by id or key, that must complete first; repeatable")
	f.StringVar(&o.order.Root, "root", "", "the `root` to work on: only nodes that reach it run the item (default with several nodes: the root of this node)")
	f.StringVar(&o.order.Policy, "policy", "", "the policy of its grant: "+lockkeeper.PolicyNames(lockkeeper.Policies())+" (default "+lockkeeper.DefaultPolicy+")")
	f.SetInterspersed(false) // flags after the command are the command's
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
	if err := p.Answer(it, "%s", it.ID); err != nil {
		return err
	}
	switch {
	case it.Failure != nil && p.JSON:
		return &command.ExitError{Code: command.ExitOverLock}
	case it.Failure != nil:
		p.Say("item " + it.ID + " failed and will not run: " + it.Failure.Reason)
		return &command.ExitError{Code: command.ExitOverLock}
	}
	return p.remark(cmd.Context(), q, it)
}

// build returns the order with its paths resolved, after all checks that are possible here.
func (o *submitOptions) build(p *program, cmd *cobra.Command, a *project.Project, argv []string) (order sched.ItemSpec, err error) {
	order = o.order
	order.Command, order.Job = argv, true
	order.Workflow = cmp.Or(order.Workflow, term.Ellipsis(term.Clean(cmp.Or(order.Key, shellword.Join(argv))), NameWidth))
	if order.Key == "" && cmd.Flags().Changed("key") {
		return order, &lockkeeper.InputError{Field: "key", Reason: "empty", Next: "give a key, or omit --key"}
	}
	if i := slices.IndexFunc(argv, func(arg string) bool { return !utf8.ValidString(arg) }); i >= 0 {
		return order, &lockkeeper.InputError{Field: "command", Value: argv[i], Reason: "not valid UTF-8", Next: "pass such bytes through a file"}
	}
	if order.Locks, err = o.Resolve(p.Program, a); err != nil {
		return order, err
	}
	if len(order.Locks) == 0 && slices.ContainsFunc([]string{"read-from", "write-from"}, cmd.Flags().Changed) {
		return order, command.Usage(cmd, "needs a path, but its lists are empty; nothing was queued")
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

// remark prints what prevents an item from starting: an earlier item failed, or, on a terminal,
// no worker is running.
func (p *program) remark(ctx context.Context, q *job.Queue, it *lockkeeper.Item) error {
	if p.JSON {
		return nil
	}
	failed, err := q.FailedBefore(ctx, it)
	if err != nil {
		return err
	}
	if failed != nil {
		fmt.Fprintf(p.Err, "note: %s waits for %s (%s), which failed: %s\n", it.ID, failed.ID, Title(failed), noteOf(failed))
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

// startWorker is the next step if no worker is running.
const startWorker = "lockkeeper job work --slots 4, because no worker is running"

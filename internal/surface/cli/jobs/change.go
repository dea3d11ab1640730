package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/compat/resource"
	"lockkeeper/internal/encoding/shellword"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/job"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/view"
	"lockkeeper/sched"
)

type submitOptions struct {
	command.Targets
	order sched.ItemSpec
	op    string // the operation that the command is; empty: none
	args  resource.Args
}

func (p *program) submitCommand() *cobra.Command {
	var o submitOptions
	cmd := &cobra.Command{
		Use:   "submit -- COMMAND…",
		Short: "Queue a command and print the id of its item",
		Long: `Queue a command and print the id of its item. A worker (lockkeeper job work) starts it
when the items it comes after are completed. All its locks and a slot of each of its
pools must also be free at that moment. It runs in the directory where you submitted it,
with standard input closed, and edits its locked files in place.

The command line is stored and visible to everyone who can see the queue. Pass secrets
through files or the environment of the worker. You choose the key. A second item with
the same key is refused, so a script that submits can run again.

With --op the command is an operation of lockkeeper.yaml: it gets the locks that its table
names, when it starts. Its item is of the project of its first resource, and counts as a
map job if it writes a map. An ambiguous operation, or one that needs an approval, is
refused.

The policy of the grant is dal if the job is an operation or names a node, otherwise that
of job_policy in lockkeeper.yaml. With a policy that locks no directories, a directory
named for writing fails with exit code 6. The item is kept as failed and never runs.

Phases, first to start: ` + sched.Phases(flow.QueueOrder()).String() + `.`,
		Example: `  lockkeeper job submit --write app/user.rb -- claude -p "fix the user model"
  lockkeeper job submit --read . --pool test --phase test --after j12 -- make test
  lockkeeper job submit --op generate-tiles --of project/p1/map/m2 -- ./bin/tiles m2
  lockkeeper job submit --project shop --class cpu --key nightly-index -- ./bin/index`,
		Args: p.AfterDashes,
		RunE: p.OnQueue(func(cmd *cobra.Command, a *project.Project, q *job.Queue, argv []string) error {
			return p.submit(cmd, a, q, o, argv)
		}),
	}
	f := cmd.Flags()
	o.Targets.Flags(f)
	f.StringVar(&o.op, "op", "", "the `operation` that the command is, whose locks it gets: lockkeeper op lists them")
	f.StringArrayVar(&o.args.Of, "of", nil, "with --op: a `resource` that it works on, by name or, for a node, by path; repeatable")
	f.IntVar(&o.args.Objects, "objects", 0, "with --op: how many objects change")
	f.StringVar(&o.order.Workflow, "name", "", "the name of the item (default: the key, or the start of the command line)")
	f.StringVar(&o.order.Key, "key", "", "a unique `name` of your own")
	f.StringVar(&o.order.Project, "project", "", "the `project` of the item: projects take turns, and each has limits")
	f.StringVar(&o.order.Class, "class", "", "`cpu` or io: what the command uses most")
	f.BoolVar(&o.order.Map, "map", false, "a map job, which has its own limit in its project")
	f.StringVar(&o.order.Phase, "phase", sched.DefaultPhase, "the `phase` of the item, which sets its priority")
	f.StringArrayVar(&o.order.Pools, "pool", nil, "a `pool` whose slot it needs: "+sched.PoolAgent+", "+sched.PoolAPI+" or "+sched.PoolTest+"; repeatable")
	f.StringArrayVar(&o.order.After, "after", nil, "an `item`, by id or key, that must complete first, or a list such as j1,j2; repeatable")
	f.StringVar(&o.order.Root, "root", "", "the `root` to work on: only nodes that reach it run the item (default with several nodes: the root of this node)")
	f.StringVar(&o.order.Policy, "policy", "", "the policy of its grant: "+lockkeeper.PolicyNames(lockkeeper.Policies())+" (default: job_policy; with --op or a node "+acts.DataPolicy+")")
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
	if o.op != "" {
		if order, err = o.operation(a, order, argv); err != nil {
			return order, err
		}
	} else if len(o.args.Of) > 0 || o.args.Objects != 0 {
		return order, command.Usage(cmd, "has --of or --objects without --op")
	}
	order.Policy = acts.PolicyFor(order.Policy, order.Locks, a.Config.JobPolicy)
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
	order.After = nil
	for _, names := range o.order.After {
		order.After = append(order.After, strings.Split(names, ",")...)
	}
	order.By = p.Actor()
	return order, nil
}

// operation adds the locks of an operation to an order.
func (o *submitOptions) operation(a *project.Project, order sched.ItemSpec, argv []string) (sched.ItemSpec, error) {
	op, err := acts.FindOperation(a, o.op, o.args, argv)
	if err != nil {
		return order, err
	}
	if err := op.Unattended(); err != nil {
		return order, err
	}
	order.Locks = append(order.Locks, op.Locks...)
	order.Policy = cmp.Or(order.Policy, acts.DataPolicy)
	order.Map = order.Map || op.WritesMap()
	if parts := strings.Split(op.Resources[0], "/"); order.Project == "" && len(parts) > 1 {
		order.Project = parts[1] // the second part of project/p1
	}
	if o.order.Workflow == "" && order.Key == "" {
		order.Workflow = term.Ellipsis(op.Operation+" "+op.Resources[len(op.Resources)-1], NameWidth)
	}
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
		p.Note("%s waits for %s (%s), which failed: %s", it.ID, failed.ID, Title(failed), noteOf(failed))
		p.Advise("lockkeeper job retry " + failed.ID)
		return nil
	}
	if !term.IsTerminal(p.Err) {
		return nil
	}
	workers, err := q.Workers(ctx)
	if err == nil && len(workers) == 0 {
		p.Advise(workerFor(it))
	}
	return err
}

const startWorker = "lockkeeper job work --slots 4, because no worker is running"

// workerFor returns the command that starts an item while no worker is running. Only a run takes the
// items of its flow.
func workerFor(it *lockkeeper.Item) string {
	if name := run.FlowOf(it); name != "" {
		return "lockkeeper run --flow " + name + ", because no run takes it now"
	}
	return startWorker
}

func (p *program) retryCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "retry ITEM…",
		Short: "Return failed items to the queue",
		Long: `Return failed items to the queue, at the phase in which they failed and behind the items
that are queued now. Name an item by its id, its key, or its name if that is unique.`,
		Example: `  lockkeeper job retry j12
  lockkeeper job list --status failed --json | jq -r '.[].id' | xargs lockkeeper job retry`,
		Args: command.AtLeast(1, "the items to retry"),
		RunE: p.OnQueue(func(cmd *cobra.Command, a *project.Project, q *job.Queue, names []string) error {
			by := p.Actor()
			return p.eachItem(cmd.Context(), q, names, "is queued again", func(it *lockkeeper.Item) (*lockkeeper.Item, error) {
				if err := p.leftBehind(cmd.Context(), a, q, it); err != nil {
					return nil, err
				}
				return acts.RetryItem(cmd.Context(), a, it, "", by)
			})
		}),
	}
}

// leftBehind refuses to retry an item whose worker is gone, because it returns to the queue by
// itself.
func (p *program) leftBehind(ctx context.Context, a *project.Project, q *job.Queue, it *lockkeeper.Item) error {
	if !it.IsHolding() {
		return nil
	}
	v, err := view.New(a).Item(ctx, it.ID)
	if err != nil || v.Worker != nil {
		return err
	}
	others, err := q.Workers(ctx)
	if err != nil {
		return err
	}
	next := "lockkeeper why " + it.ID
	if len(others) == 0 {
		next = workerFor(it)
	}
	return &lockkeeper.RefusedError{Act: "retry of " + it.ID, Reason: "its worker " + it.Worker + " is gone, and the item " + p.goesBack(v), Next: next}
}

func (p *program) cancelCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "cancel ITEM…",
		Short: "Cancel queued items",
		Long: `Cancel items, which can be retried later. Canceling a running item stops its command and
force-releases its grant. It asks first, so it needs a terminal; agents cannot do it.`,
		Example: `  lockkeeper job cancel j12 --reason "planned twice"`,
		Args:    command.AtLeast(1, "the items to cancel"),
		RunE: p.OnQueue(func(cmd *cobra.Command, _ *project.Project, q *job.Queue, names []string) error {
			return p.eachItem(cmd.Context(), q, names, "is canceled", func(it *lockkeeper.Item) (*lockkeeper.Item, error) {
				by, err := p.mayCancel(it)
				if err != nil {
					return nil, err
				}
				return q.Cancel(cmd.Context(), it.ID, by, strings.TrimSpace(reason))
			})
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the audit trail")
	return cmd
}

// mayCancel returns who cancels an item. A person must confirm the cancel of a running item;
// for an agent the engine refuses, and records the attempt.
func (p *program) mayCancel(it *lockkeeper.Item) (lockkeeper.Actor, error) {
	if _, inside := p.Agent(); inside || !it.IsHolding() {
		return p.Actor(), nil
	}
	facts := fmt.Sprintf("%s (%s) %s has run for %s: %s\nIt loses its locks, and its command is stopped.",
		it.ID, Title(it), term.Clean(it.Phase), term.Span(p.Now().Sub(it.DispatchedAt)), term.Clean(shellword.Join(it.Command)))
	return p.Person(), p.Agree(fmt.Sprintf("cancel of %s (%s)", it.ID, Title(it)), facts)
}

// eachItem changes items one by one, and prints each. A refused item does not stop the others.
func (p *program) eachItem(ctx context.Context, q *job.Queue, names []string, done string,
	change func(*lockkeeper.Item) (*lockkeeper.Item, error)) error {
	changed, facts := []*lockkeeper.Item{}, []map[string]any{}
	var refused []error
	for _, name := range names {
		it, err := item(ctx, q, name)
		if err == nil {
			it, err = change(it)
		}
		if err != nil {
			refused, facts = append(refused, err), append(facts, p.Facts(err))
			continue
		}
		changed = append(changed, it)
		if !p.JSON {
			fmt.Fprintf(p.Out, "%s (%s) %s\n", it.ID, Title(it), done)
		}
	}
	err := errors.Join(refused...)
	if !p.JSON {
		return err
	}
	printed := p.PrintJSON(map[string]any{"changed": changed, "refused": facts})
	if printed == nil && err != nil {
		return &command.ExitError{Code: command.ExitCode(err)}
	}
	return printed
}

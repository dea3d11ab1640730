package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/acts"
	"lockkeeper/internal/app"
)

func (p *program) retryCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "retry ITEM…",
		Short: "Put failed items back into the queue",
		Long: `Put failed items back into the queue, at the phase in which they failed and
behind those that are queued by now. An item is named by its id, its key, or what
it is called where that is clear.`,
		Example: `  lockkeeper job retry j12
  lockkeeper job list --status error --json | jq -r '.[].id' | xargs lockkeeper job retry`,
		Args: atLeast(1, "the items to retry"),
		RunE: func(cmd *cobra.Command, names []string) error {
			return p.withQueue(cmd.Context(), p.settings(), func(a *app.App, q *app.Queue) error {
				by := p.actor()
				return p.eachItem(cmd.Context(), q, names, "is queued again", func(it *lockkeeper.Item) (*lockkeeper.Item, error) {
					if err := p.leftBehind(cmd.Context(), a, q, it); err != nil {
						return nil, err
					}
					return acts.RetryItem(cmd.Context(), a, it, "", by)
				})
			})
		},
	}
}

// leftBehind refuses the retry of an item whose worker is gone: it needs none.
func (p *program) leftBehind(ctx context.Context, a *app.App, q *app.Queue, it *lockkeeper.Item) error {
	if !it.IsHolding() {
		return nil
	}
	w, others, err := p.workerOf(ctx, q, it)
	if err != nil || w != nil {
		return err
	}
	back, err := p.goesBack(ctx, a, it)
	if err != nil {
		return err
	}
	next := "lockkeeper why " + it.ID
	if others == 0 {
		next = startWorker
	}
	return &lockkeeper.RefusedError{Act: "retry of " + it.ID, Reason: "its worker " + it.Worker + " is gone, and it " + back + " by itself", Next: next}
}

func (p *program) cancelCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "cancel ITEM…",
		Short: "Take items out of the queue",
		Long: `Take items out of the queue, into the error state, from which they can be
retried. One that runs is ended first, which takes its grant from it: that asks
you to type its id, on a terminal, and agents may not do it.`,
		Example: `  lockkeeper job cancel j12 --reason "planned twice"`,
		Args:    atLeast(1, "the items to cancel"),
		RunE: func(cmd *cobra.Command, names []string) error {
			return p.withQueue(cmd.Context(), p.settings(), func(_ *app.App, q *app.Queue) error {
				return p.eachItem(cmd.Context(), q, names, "is cancelled", func(it *lockkeeper.Item) (*lockkeeper.Item, error) {
					by, err := p.canceller(it)
					if err != nil {
						return nil, err
					}
					return q.Cancel(cmd.Context(), it.ID, by, strings.TrimSpace(reason))
				})
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for whoever looks at it later")
	return cmd
}

// canceller is who cancels an item. To end a running one takes a person, who confirms
// it; an agent is left to the engine, which refuses, and records that it was tried.
func (p *program) canceller(it *lockkeeper.Item) (lockkeeper.Actor, error) {
	if _, inside := p.agent(); inside || !it.IsHolding() {
		return p.actor(), nil
	}
	facts := fmt.Sprintf("%s (%s) %s runs for %s: %s\nIt loses its locks, and what runs under them is ended.",
		it.ID, title(it), clean(it.Phase), span(p.Now().Sub(it.DispatchedAt)), clean(typed(it.Command)))
	return p.person(), p.confirm(fmt.Sprintf("cancel of %s (%s)", it.ID, title(it)), facts, it.ID)
}

// eachItem changes items one by one, and tells of each: that one is refused does not
// keep the others from being changed.
func (p *program) eachItem(ctx context.Context, q *app.Queue, names []string, done string,
	change func(*lockkeeper.Item) (*lockkeeper.Item, error)) error {
	changed, facts := []*lockkeeper.Item{}, []map[string]any{}
	var refused []error
	for _, name := range names {
		it, err := p.item(ctx, q, name)
		if err == nil {
			it, err = change(it)
		}
		if err != nil {
			refused, facts = append(refused, err), append(facts, p.facts(err))
			continue
		}
		changed = append(changed, it)
		if !p.json {
			fmt.Fprintf(p.Out, "%s (%s) %s\n", it.ID, title(it), done)
		}
	}
	err := errors.Join(refused...)
	if !p.json {
		return err
	}
	printed := p.printJSON(map[string]any{"changed": changed, "refused": facts})
	if printed == nil && err != nil {
		return &codedError{exit: exitCode(err)}
	}
	return printed
}

func (p *program) jobOutputCommand() *cobra.Command {
	var attempt int
	cmd := &cobra.Command{
		Use:   "output ITEM",
		Short: "What an item's command said",
		Long: `Print what an item's command wrote to standard output and standard error: of its
last attempt, or of another one that is still kept. Of much only the end is kept.
For an item of a flow, see lockkeeper run, it is what its agent does, or did last.`,
		Example: `  lockkeeper job output j12
  lockkeeper job output j12 --attempt 1`,
		Args: exactly(1, "one item"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withQueue(cmd.Context(), p.settings(), func(a *app.App, q *app.Queue) error {
				it, err := p.item(cmd.Context(), q, args[0])
				if err != nil {
					return err
				}
				if !cmd.Flags().Changed("attempt") {
					attempt = it.Attempts
				} else if attempt < 1 {
					return &lockkeeper.InputError{Field: "attempt", Value: fmt.Sprint(attempt), Reason: "attempts are counted from 1", Next: "leave --attempt out for the last one"}
				}
				return p.showOutput(a, it, attempt)
			})
		},
	}
	cmd.Flags().IntVar(&attempt, "attempt", 0, "of this `attempt` (default: the last)")
	return cmd
}

func (p *program) showOutput(a *app.App, it *lockkeeper.Item, attempt int) (err error) {
	f, err := a.AgentLog(it)
	if f == nil && err == nil {
		f, err = a.Output(it, attempt)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if !p.json && !isTerminal(p.Out) {
		_, err = io.Copy(p.Out, f)
		return err
	}
	text, err := io.ReadAll(f)
	switch {
	case err != nil:
		return err
	case p.json:
		return p.printJSON(map[string]any{"id": it.ID, "attempt": attempt, "output": string(text)})
	}
	_, err = fmt.Fprint(p.Out, p.legible(string(text)))
	return err
}

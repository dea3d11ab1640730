package landings

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/view"
	"lockkeeper/rescue"
)

func (p *program) rescueCommand() *cobra.Command {
	return command.Group(&cobra.Command{
		Use:   "rescue",
		Short: "Review changes that could not land",
		Long: `Review changes that could not land, and land or delete them: gaps (writes that were
refused or made without a lock), edits that gave way to others, and uncommitted files
that commands of sessions removed or overwrote. They are kept for the time in gate.keep,
by default 14 days.`,
		Example: `  lockkeeper rescue list
  lockkeeper rescue show 20260131T090000.123-1b4e28ba
  lockkeeper rescue land 20260131T090000.123-1b4e28ba`,
	}, p.rescueListCommand(), p.rescueShowCommand(), p.rescueLandCommand(), p.rescueDropCommand())
}

func (p *program) rescueListCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List kept changes, newest last",
		Long: `List the kept changes, newest last: what each is, its path, who made it, and why it
did not land. Gaps that are answered, and work of batches that landed later, are listed
only with --all.`,
		Example: `  lockkeeper rescue list
  lockkeeper rescue list --json | jq -r '.[].path'`,
		RunE: p.OnProject(func(cmd *cobra.Command, a *project.Project, _ []string) error {
			v, err := view.New(a).Rescue(cmd.Context())
			if err == nil {
				err = v.Err
			}
			if err != nil {
				return err
			}
			hidden := 0
			if !all {
				v, hidden = v.Unresolved()
			}
			list := []view.KeptChange{}
			for _, e := range slices.Backward(v.Entries) {
				list = append(list, e.KeptChange)
			}
			switch {
			case p.JSON:
				return p.PrintJSON(list)
			case len(list) == 0 && hidden > 0:
				_, err = fmt.Fprintf(p.Out, "no kept change needs you; %d resolved: lockkeeper rescue list --all\n", hidden)
				return err
			case len(list) == 0:
				_, err = fmt.Fprintln(p.Out, "no changes are kept")
				return err
			}
			Rescued(list, p.Now()).Print(p.Out, p.Painter(p.Out))
			if hidden > 0 {
				p.Note("%d resolved and not shown; all: --all", hidden)
			}
			p.Advise("lockkeeper rescue show ID, then lockkeeper rescue land ID or lockkeeper rescue drop ID")
			return nil
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "also list resolved changes")
	return cmd
}

func Rescued(list []view.KeptChange, now time.Time) *term.Table {
	t := &term.Table{Heads: []string{"ID", "AGE", "WHAT", "PATH", "BY", "SIZE", "WHY"}, Wide: 6, Sentences: true}
	for _, e := range list {
		t.Add(rescue.ShortID(e.ID), term.Span(now.Sub(e.At)), view.RescueKind(e.Entry), term.Clean(e.Path), term.Clean(e.Holder), size(e.Entry), term.Clean(lockkeeper.LocalTimes(e.Reason)))
	}
	return t
}

func size(e rescue.Entry) string {
	if e.Delete || e.Sum == "" {
		return "-"
	}
	return view.Bytes(e.Size)
}

func (p *program) rescueShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Show a kept change as a diff",
		Long: `Show a kept change: its facts, and a diff against the file as it is now. If the change is
in the tree already, the diff is against the file before it, if that is known. For binary
content, damaged content, and a directory that was moved aside it prints the path instead.`,
		Example: `  lockkeeper rescue show 20260131T090000.123-1b4e28ba
  lockkeeper rescue show 20260131T090000.123-1b4e28ba --json | jq -r .diff`,
		Args: command.Exactly(1, "the id of a kept change"),
		RunE: p.OnProject(func(cmd *cobra.Command, a *project.Project, args []string) error {
			v, err := view.New(a).Rescued(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return p.showRescue(v)
		}),
	}
}

type shown struct {
	view.KeptChange
	Diff string `json:"diff"`
	Note string `json:"note,omitempty"` // instead of a diff, or about it
}

func (p *program) showRescue(v *view.RescueDetail) error {
	e, diff := v.Entry, v.Diff.Files[0].Text
	if p.JSON {
		return p.PrintJSON(shown{KeptChange: v.KeptChange, Diff: diff, Note: v.Note})
	}
	fmt.Fprintf(p.Out, "%s: %s of %s, %s\n", e.ID, v.What, term.Clean(e.Path), size(e))
	fmt.Fprintf(p.Out, "  kept %s ago, at %s; wanted by %s", term.Span(p.Now().Sub(e.At)), term.Stamp(e.At), term.Clean(e.Holder))
	if e.GrantID != "" {
		fmt.Fprintf(p.Out, ", grant %s", term.Clean(lockkeeper.ShortID(e.GrantID)))
	}
	fmt.Fprintf(p.Out, "\n  why: %s\n  the file at that time: %s\n", term.Clean(lockkeeper.LocalTimes(e.Reason)), term.Clean(e.Base.String()))
	if v.Note != "" {
		fmt.Fprintln(p.Out, "  "+term.Clean(v.Note))
	}
	fmt.Fprint(p.Out, p.Legible(diff))
	p.Advise(v.Next + ", or lockkeeper rescue drop " + e.ID)
	return nil
}

type rescueLandOptions struct {
	command.OwnLock
	ontoCurrent bool
}

func (p *program) rescueLandCommand() *cobra.Command {
	var o rescueLandOptions
	cmd := &cobra.Command{
		Use:     "land ID",
		Aliases: []string{"restore"},
		Short:   "Land a kept change",
		Long: `Land a kept change through the gate. It acquires the lock on the path and fails with exit
code 3 while another holder has it. With --grant it uses your grant. It is refused if the
file has changed since the content was kept; with --onto-current it replaces the file
anyway. A change that has landed is no longer kept. A directory that was moved aside
cannot be landed; move it back by hand. An agent lands only what it wrote itself.

"rescue restore" is the same command. An uncommitted file that a command of a session
removed or overwrote is restored to its place, also outside of gate.allowed_write_paths.
The file that --onto-current replaces there is kept in turn.`,
		Example: `  lockkeeper rescue land 20260131T090000.123-1b4e28ba
  lockkeeper rescue restore 20260131T090000.123-1b4e28ba
  lockkeeper rescue land --onto-current 20260131T090000.123-1b4e28ba`,
		Args: command.Exactly(1, "the id of a kept change"),
		RunE: p.OnProject(func(cmd *cobra.Command, a *project.Project, args []string) error {
			return p.rescueLand(cmd, a, args[0], o)
		}),
	}
	cmd.Flags().BoolVar(&o.ontoCurrent, "onto-current", false, "replace the file as it is now")
	o.Flags(cmd.Flags())
	return cmd
}

func (p *program) rescueLand(cmd *cobra.Command, a *project.Project, id string, o rescueLandOptions) error {
	e, l, err := acts.LandRescued(cmd.Context(), a, id, o.ontoCurrent, p.Changer(a), p.holding(cmd, a, o.OwnLock))
	if err != nil {
		return err
	}
	seq := uint64(0)
	if l != nil {
		seq = l.Seq
	}
	switch {
	case p.JSON:
		return p.PrintJSON(map[string]any{"landing": seq, "path": e.Path, "dropped": id})
	case l == nil:
		_, err = fmt.Fprintf(p.Out, "%s has this content already; dropped %s\n", term.Clean(e.Path), id)
	default:
		_, err = fmt.Fprintf(p.Out, "landing %d: %s; dropped %s\n", seq, term.Clean(e.Path), id)
		if e.Kind == rescue.Uncommitted {
			if o.ontoCurrent {
				p.Advise("lockkeeper rescue list shows what it replaced")
			}
			return err
		}
		p.Advise(command.UndoStep(seq, o.Grant))
	}
	return err
}

type dropOptions struct {
	yes, all bool
	older    term.Duration
}

func (p *program) rescueDropCommand() *cobra.Command {
	var o dropOptions
	cmd := &cobra.Command{
		Use:   "drop ID… | --all | --older AGE",
		Short: "Delete kept changes",
		Long: `Delete kept changes for good: those with the given ids, all of them, or those that are
older than an age such as 7d. It shows them and asks on a terminal; without a terminal
it needs --yes. Agents cannot run it.`,
		Example: `  lockkeeper rescue drop 1b4e28ba
  lockkeeper rescue drop --older 7d
  lockkeeper rescue drop --all --yes`,
		Args: func(cmd *cobra.Command, args []string) error {
			older := cmd.Flags().Changed("older")
			if (len(args) > 0) == (o.all || older) || o.all && older {
				return command.Usage(cmd, "needs ids of kept changes, --all, or --older")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.AsPerson(cmd.Context(), "rescue drop", func(a *project.Project) error { return p.rescueDrop(cmd.Context(), a.Shelf(), args, o) })
		},
	}
	cmd.Flags().BoolVar(&o.yes, "yes", false, "do not ask")
	cmd.Flags().BoolVar(&o.all, "all", false, "delete all kept changes")
	cmd.Flags().Var(&o.older, "older", "delete the changes that are older than this, such as 7d")
	return cmd
}

// chosen returns the kept changes to delete.
func (o dropOptions) chosen(ctx context.Context, shelf *rescue.Shelf, ids []string, now time.Time) (list []rescue.Entry, err error) {
	if len(ids) == 0 {
		all, err := shelf.List(ctx)
		return slices.DeleteFunc(all, func(e rescue.Entry) bool { return !o.all && now.Sub(e.At) < time.Duration(o.older) }), err
	}
	for _, text := range ids {
		id, err := shelf.Find(ctx, text)
		if err != nil {
			return nil, err
		}
		e, err := shelf.Get(id)
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
}

func (p *program) rescueDrop(ctx context.Context, shelf *rescue.Shelf, ids []string, o dropOptions) error {
	list, err := o.chosen(ctx, shelf, ids, p.Now())
	if err != nil {
		return err
	}
	describe := func(e rescue.Entry) string {
		return fmt.Sprintf("%s: %s of %s, %s, wanted by %s", e.ID, view.RescueKind(e), term.Clean(e.Path), size(e), term.Clean(e.Holder))
	}
	switch {
	case len(list) == 0:
		return p.Answer(map[string]any{"dropped": []view.KeptChange{}}, "no kept change matches")
	case len(list) == 1 && len(ids) == 1:
		if err := p.AgreeUnlessYes(o.yes, "rescue drop", "This deletes "+describe(list[0])+", for good."); err != nil {
			return err
		}
		if err := shelf.Drop(list[0].ID); err != nil {
			return err
		}
		return p.Answer(map[string]any{"dropped": view.KeptOf(list[0])}, "dropped %s", describe(list[0]))
	}
	facts := "This deletes " + term.Counted(len(list), "kept change") + ", for good:"
	for _, e := range list {
		facts += "\n  " + describe(e)
	}
	if err := p.AgreeUnlessYes(o.yes, "rescue drop", facts); err != nil {
		return err
	}
	dropped := []view.KeptChange{}
	for _, e := range list {
		if err := shelf.Drop(e.ID); err != nil {
			return err
		}
		dropped = append(dropped, view.KeptOf(e))
	}
	return p.Answer(map[string]any{"dropped": dropped}, "dropped %s", term.Counted(len(dropped), "kept change"))
}

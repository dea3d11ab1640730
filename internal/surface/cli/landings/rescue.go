package landings

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
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
	var all, groups bool
	var where string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List kept changes, newest last",
		Long: `List the kept changes, newest last: what each is, its path, who made it, why it did not
land, and whether it applies to the file as it is now:

  unchanged  the file is as the change found it: it applies
  clean      the file moved on, and the change can be merged into it
  conflict   the file moved on, and both changed the same lines
  unknown    it is not known what the change was based on
  landed     the file has the content already

With --groups it lists one line for each batch and reason. --where lists those that meet
conditions, as for "rescue land". Gaps that are answered, and work of batches that landed
later, are listed only with --all.`,
		Example: `  lockkeeper rescue list
  lockkeeper rescue list --groups
  lockkeeper rescue list --where 'batch=blog/*,now=clean'
  lockkeeper rescue list --json | jq -r '.[].path'`,
		RunE: p.OnProject(func(cmd *cobra.Command, a *project.Project, _ []string) error {
			reader := view.New(a)
			v, err := reader.Rescue(cmd.Context())
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
			if err := reader.Fits(cmd.Context(), v.Entries); err != nil {
				return err
			}
			if v, err = v.Where(where); err != nil {
				return err
			}
			if groups {
				return p.rescueGroups(v)
			}
			list := []view.KeptChange{}
			for _, e := range slices.Backward(v.Entries) {
				list = append(list, e.KeptChange)
			}
			switch {
			case p.JSON:
				return p.PrintJSON(list)
			case len(list) == 0 && where != "":
				_, err = fmt.Fprintln(p.Out, "no kept change matches")
				return err
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
	cmd.Flags().BoolVar(&groups, "groups", false, "one line for each batch and reason")
	cmd.Flags().StringVar(&where, "where", "", "only the changes that meet these `conditions`")
	return cmd
}

// rescueGroups prints one line for each batch and reason.
func (p *program) rescueGroups(v *view.Rescue) error {
	groups := v.Groups()
	if p.JSON {
		return p.PrintJSON(groups)
	}
	t := &term.Table{Heads: []string{"GROUP", "CHANGES", "APPLY", "CONFLICT", "WHAT", "BY", "WHY"}, Wide: 6, Sentences: true}
	for _, g := range groups {
		t.Add(g.ID, fmt.Sprint(len(g.Entries)), fmt.Sprint(g.Applying), fmt.Sprint(g.Conflicting), g.Kind, term.Clean(g.Batch), term.Clean(lockkeeper.LocalTimes(g.Reason)))
	}
	t.Print(p.Out, p.Painter(p.Out))
	p.Advise("lockkeeper rescue list --where group=GROUP, then lockkeeper rescue land or rescue drop with the same --where")
	return nil
}

// Rescued returns a table of kept changes, with whether they apply if they were compared.
func Rescued(list []view.KeptChange, now time.Time) *term.Table {
	t := &term.Table{Heads: []string{"ID", "AGE", "WHAT", "PATH", "BY", "SIZE", "WHY"}, Wide: 6, Sentences: true}
	compared := slices.ContainsFunc(list, func(e view.KeptChange) bool { return e.Fit != nil })
	if compared {
		t.Heads, t.Wide = slices.Insert(t.Heads, 6, "NOW"), 7
	}
	for _, e := range list {
		row := []string{rescue.ShortID(e.ID), term.Span(now.Sub(e.At)), view.RescueKind(e.Entry), term.Clean(e.Path), term.Clean(e.Holder), size(e.Entry)}
		if compared {
			row = append(row, applies(e))
		}
		t.Add(append(row, term.Clean(lockkeeper.LocalTimes(e.Reason)))...)
	}
	return t
}

// applies says whether a change applies to the file as it is now.
func applies(e view.KeptChange) string {
	if e.Fit == nil || e.Fit.State == "" {
		return "-"
	}
	return e.Fit.State
}

func size(e rescue.Entry) string {
	if e.Delete || e.Sum == "" {
		return "-"
	}
	return view.Bytes(e.Size)
}

func (p *program) rescueShowCommand() *cobra.Command {
	merged := false
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show a kept change as a diff",
		Long: `Show a kept change: its facts, a diff against the content that it was based on, what
changed in the file since, and whether the change applies to it. If the base is not known,
the diff is against the file as it is now and says so. For binary content, damaged content,
and a directory that was moved aside it prints the path instead.

--merged prints only the file with the change merged into it. Conflicts are marked as in
git; edit the file, then land it with "rescue land --resolved".`,
		Example: `  lockkeeper rescue show 20260131T090000.123-1b4e28ba
  lockkeeper rescue show --merged 1b4e28ba >user.rb.merged
  lockkeeper rescue show 20260131T090000.123-1b4e28ba --json | jq -r .diff`,
		Args: command.Exactly(1, "the id of a kept change"),
		RunE: p.OnProject(func(cmd *cobra.Command, a *project.Project, args []string) error {
			v, err := view.New(a).Rescued(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if merged {
				return p.showMerged(v)
			}
			return p.showRescue(v)
		}),
	}
	cmd.Flags().BoolVar(&merged, "merged", false, "print the file with the change merged into it")
	return cmd
}

type shown struct {
	view.KeptChange
	Diff   string `json:"diff"`
	Note   string `json:"note,omitempty"` // instead of a diff, or about it
	Merged string `json:"merged,omitempty"`
}

// showMerged prints the merged file, and says how to land it.
func (p *program) showMerged(v *view.RescueDetail) error {
	if v.Merged == "" {
		return &lockkeeper.RefusedError{Act: "merge of " + v.ID, Reason: cmp.Or(v.Note, v.Fit.String(), "it is no text"), Next: v.Next}
	}
	if p.JSON {
		return p.PrintJSON(map[string]string{"merged": v.Merged, "base": fmt.Sprintf("%x", v.Fit.Now.Sum)})
	}
	text := v.Merged
	if term.IsTerminal(p.Out) {
		text = p.Legible(text)
	}
	fmt.Fprint(p.Out, text)
	if v.Fit.Applies() {
		p.Advise("it applies: lockkeeper rescue land " + v.ID)
		return nil
	}
	p.Advise("in " + acts.ResolveStep(v.Entry, v.Fit.Now))
	return nil
}

func (p *program) showRescue(v *view.RescueDetail) error {
	e, diff := v.Entry, v.Diff.Files[0].Text
	if p.JSON {
		return p.PrintJSON(shown{KeptChange: v.KeptChange, Diff: diff, Note: v.Note, Merged: v.Merged})
	}
	fmt.Fprintf(p.Out, "%s: %s of %s, %s\n", e.ID, v.What, term.Clean(e.Path), size(e))
	fmt.Fprintf(p.Out, "  kept %s ago, at %s; wanted by %s", term.Span(p.Now().Sub(e.At)), term.Stamp(e.At), term.Clean(e.Holder))
	if e.GrantID != "" {
		fmt.Fprintf(p.Out, ", grant %s", term.Clean(lockkeeper.ShortID(e.GrantID)))
	}
	fmt.Fprintf(p.Out, "\n  why: %s\n  the file at that time: %s\n", term.Clean(lockkeeper.LocalTimes(e.Reason)), term.Clean(e.Base.String()))
	if fit := v.Fit.String(); fit != "" && fit != v.Note {
		fmt.Fprintln(p.Out, "  now: "+term.Clean(fit))
	}
	if v.Note != "" {
		fmt.Fprintln(p.Out, "  "+term.Clean(v.Note))
	}
	for i, c := range v.Fit.Conflicts {
		if v.Fit.State != acts.FitConflict || i == 5 {
			break
		}
		fmt.Fprintf(p.Out, "  conflict at line %d:\n%s%s%s", c.Line, p.side("now", c.Now), p.side("base", c.Base), p.side("kept", c.Kept))
	}
	fmt.Fprint(p.Out, p.Legible(diff))
	p.Advise(v.Next + ", or lockkeeper rescue drop " + e.ID)
	return nil
}

// side returns one side of a conflict, with its name before each line.
func (p *program) side(name, text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		fmt.Fprintf(&b, "    %-4s | %s\n", name, term.Clean(strings.TrimRight(line, "\r\n")))
	}
	return b.String()
}

type dropOptions struct {
	yes, all bool
	older    term.Duration
	where    string
}

func (p *program) rescueDropCommand() *cobra.Command {
	var o dropOptions
	cmd := &cobra.Command{
		Use:   "drop ID… | --all | --older AGE | --where CONDITIONS",
		Short: "Delete kept changes",
		Long: `Delete kept changes for good: those with the given ids, all of them, those that are older
than an age such as 7d, or those that meet conditions as for "rescue land". It shows them
and asks on a terminal; without a terminal it needs --yes. Agents cannot run it.`,
		Example: `  lockkeeper rescue drop 1b4e28ba
  lockkeeper rescue drop --older 7d
  lockkeeper rescue drop --all --yes`,
		Args: func(cmd *cobra.Command, args []string) error {
			chosen := 0
			for _, on := range []bool{len(args) > 0, o.all, cmd.Flags().Changed("older"), o.where != ""} {
				if on {
					chosen++
				}
			}
			if chosen != 1 {
				return command.Usage(cmd, "needs ids of kept changes, --all, --older, or --where")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.AsPerson(cmd.Context(), "rescue drop", func(a *project.Project) error { return p.rescueDrop(cmd.Context(), a, args, o) })
		},
	}
	cmd.Flags().BoolVar(&o.yes, "yes", false, "do not ask")
	cmd.Flags().BoolVar(&o.all, "all", false, "delete all kept changes")
	cmd.Flags().Var(&o.older, "older", "delete the changes that are older than this, such as 7d")
	cmd.Flags().StringVar(&o.where, "where", "", "delete the changes that meet these `conditions`, such as now=landed")
	return cmd
}

// chosen returns the kept changes to delete.
func (o dropOptions) chosen(ctx context.Context, a *project.Project, ids []string, now time.Time) (list []rescue.Entry, err error) {
	if len(ids) > 0 || o.where != "" {
		return view.New(a).Chosen(ctx, acts.Chosen{IDs: ids, Where: o.where})
	}
	all, err := a.Shelf().List(ctx)
	return slices.DeleteFunc(all, func(e rescue.Entry) bool { return !o.all && now.Sub(e.At) < time.Duration(o.older) }), err
}

func (p *program) rescueDrop(ctx context.Context, a *project.Project, ids []string, o dropOptions) error {
	list, err := o.chosen(ctx, a, ids, p.Now())
	if err != nil {
		return err
	}
	describe := func(e rescue.Entry) string {
		return fmt.Sprintf("%s: %s of %s, %s, wanted by %s", e.ID, view.RescueKind(e), term.Clean(e.Path), size(e), term.Clean(e.Holder))
	}
	one := len(list) == 1 && len(ids) == 1
	facts := "This deletes " + term.Counted(len(list), "kept change") + ", for good:"
	for _, e := range list {
		facts += "\n  " + describe(e)
	}
	switch {
	case len(list) == 0:
		return p.Answer(map[string]any{"dropped": []view.KeptChange{}}, "no kept change matches")
	case one:
		facts = "This deletes " + describe(list[0]) + ", for good."
	}
	if err := p.AgreeUnlessYes(o.yes, "rescue drop", facts); err != nil {
		return err
	}
	gone, err := acts.DropMany(ctx, a, list, p.Person())
	if err != nil {
		return err
	}
	if one && len(gone) == 1 {
		return p.Answer(map[string]any{"dropped": view.KeptOf(gone[0])}, "dropped %s", describe(gone[0]))
	}
	dropped := []view.KeptChange{}
	for _, e := range gone {
		dropped = append(dropped, view.KeptOf(e))
	}
	return p.Answer(map[string]any{"dropped": dropped}, "dropped %s", term.Counted(len(dropped), "kept change"))
}

package flows

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/view"
)

func (d *decider) showCommand() *cobra.Command {
	plan := false
	cmd := &cobra.Command{
		Use:   "show REF",
		Short: "Show the facts and the diff of a decision",
		Long: `Show a decision, open or answered: the prompt of a topic, an item with its rationale, the
batches of a plan with their changes, or the diff of a batch. The name of a unit shows
its items, decisions and batches. With --plan it prints a plan that makes the change of a
gap, for lockkeeper run --plan in this or another codebase.`,
		Example: `  lockkeeper decide show item blog/posts/i3
  lockkeeper decide show blog/posts
  lockkeeper decide show review blog/posts/b1 --json | jq -r .diff
  lockkeeper decide show gap blog/posts/b1/1 --plan > ../other/tasks.yaml`,
		Args: command.AtLeast(1, "a reference"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return d.open(ctx, func() error {
				ref, rest, err := d.ref(ctx, args, progress.Kinds()...)
				switch {
				case err != nil:
					return err
				case len(rest) > 0:
					return command.Usage(cmd, "takes one reference")
				case plan:
					return d.showPlan(ctx, ref)
				}
				return d.show(ctx, ref)
			})
		},
	}
	cmd.Flags().BoolVar(&plan, "plan", false, "for a gap: print only a plan that makes its change")
	return cmd
}

func (d *decider) show(ctx context.Context, ref progress.Ref) error {
	s, err := d.facts(ctx, ref)
	if err != nil {
		return err
	}
	return d.Show(s, func() {
		d.printFacts(d.Out, s)
		d.Advise(d.steps(ctx, s))
	})
}

func (d *decider) printFacts(to term.File, s *factSheet) {
	fmt.Fprintln(to, d.Painter(to)(term.Bold, term.Clean(s.Ref.String())))
	if s.Waits {
		fmt.Fprintf(to, "  waits: for you since %s (%s); unblocks %s\n", s.at(s.Since), d.ago(s.Since), frees(s.Frees, s.Left))
	}
	for _, f := range s.Facts {
		fmt.Fprintf(to, "  %s: %s\n", term.Clean(f.Name), indented(f.Value))
	}
	if len(s.Same) > 0 {
		fmt.Fprintf(to, "  equal items: %s\n", names(s.Same))
	}
	for line := range strings.Lines(s.Diff) { // a program gets the diff unchanged
		if term.IsTerminal(to) {
			line = harmless(line) + "\n"
		}
		fmt.Fprint(to, line)
	}
}

// indented returns untrusted text, cleaned, with its lines below each other.
func indented(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i, line := range lines {
		lines[i] = harmless(line)
	}
	return strings.Join(lines, "\n    ")
}

// harmless returns an untrusted line, cleaned for the terminal.
func harmless(line string) string {
	return term.Clean(strings.ReplaceAll(strings.TrimRight(line, "\r\n"), "\t", "    "))
}

// steps returns the commands that answer an open decision.
func (d *decider) steps(ctx context.Context, s *factSheet) string {
	if !s.Waits {
		return ""
	}
	var steps []string
	for _, a := range acts.Answers() {
		if a.Kind == s.Ref.Kind && a.Word != "api" && d.flow.Gives(ctx, a.Word, s.Ref) {
			step := d.flow.Command("decide", a.Word, s.Ref.String())
			if a.Asks != "" {
				step += ` --note "…"`
			}
			steps = append(steps, step)
		}
	}
	return strings.Join(steps, ", or ")
}

// factSheet is a decision as decide show prints it: named facts in the order of reading.
type factSheet struct {
	Ref     progress.Ref    `json:"ref"`
	Waits   bool            `json:"waits"`           // the decision is open
	Since   time.Time       `json:"since,omitzero"`  // set only if the decision is open, as are the next four fields
	Frees   int             `json:"frees,omitempty"` // items that can start after the answer
	Left    int             `json:"left,omitempty"`  // answers needed before these items can start, including this one
	Version string          `json:"version,omitempty"`
	Facts   []progress.Fact `json:"facts"`
	Same    []progress.Ref  `json:"same,omitempty"`
	Diff    string          `json:"diff,omitempty"`
	Unit    *progress.Unit  `json:"unit,omitempty"` // unit of a plan

	stamp func(time.Time) string
}

// facts reads a decision as facts: times are local for people, and UTC as JSON.
func (d *decider) facts(ctx context.Context, ref progress.Ref) (*factSheet, error) {
	v, err := view.New(d.flow.App).Decision(ctx, d.flow.Flow.Name, ref)
	if err != nil {
		return nil, err
	}
	s := &factSheet{Ref: ref, Waits: v.Waits, Since: v.Since, Frees: v.Frees, Left: v.Left, Version: v.Version, Facts: []progress.Fact{}, Same: v.Same, stamp: term.Stamp}
	if d.JSON {
		s.stamp = func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	}
	switch {
	case v.Topic != nil:
		s.topic(v)
	case v.Item != nil:
		s.item(v)
	case v.Plan != nil:
		s.Unit = v.Unit
		s.plan(v, func(item string) string { return d.flow.Command("decide", "reenable", v.Unit.Name+"/"+item) })
	case v.Review != nil:
		s.batch(v.Review)
		for _, f := range v.Review.Diff.Files {
			if f.Note != "" {
				s.Diff += f.Path + ": " + f.Note + "\n"
			}
			s.Diff += f.Text
		}
	case v.Failure != nil:
		s.failure(v.Failure)
	case v.Gap != nil:
		s.gap(v.Gap)
		if v.Gap.Diff != nil {
			s.Diff = v.Gap.Diff.Files[0].Text
		}
	}
	return s, nil
}

func (s *factSheet) failure(f *progress.CommonFailure) {
	s.add("failure", strings.Join(f.Parts, "\n"))
	s.add("batches", strings.Join(f.Batches, ", "))
	s.add("phase", f.Phase)
	s.add("command", f.Command)
	s.add("output", f.Last)
	s.add("all of it", f.Output)
	if f.Answer != "" {
		s.add("answer", f.Answer+", by "+f.By)
	}
}

func (s *factSheet) add(name, value string) {
	if value != "" {
		s.Facts = append(s.Facts, progress.Fact{Name: name, Value: value})
	}
}

// at formats a time. A document written by hand has no time.
func (s *factSheet) at(t time.Time) string {
	if t.IsZero() {
		return "an unknown time"
	}
	return s.stamp(t)
}

func (s *factSheet) by(name string, at time.Time) string {
	if name == "" {
		return ""
	}
	return ", by " + name + " at " + s.at(at)
}

func (s *factSheet) topic(v *view.Decision) {
	s.add("prompt", v.Topic.Prompt)
	s.add("state", string(v.Topic.State)+s.by(v.Topic.By, v.Topic.At))
	s.add("method", v.Topic.Method)
	s.add("text", v.Topic.Text)
	s.add("controller", v.Purpose)
	if v.Asked {
		s.add("asked", "the next run asks the Messages API")
	}
}

func (s *factSheet) item(v *view.Decision) {
	i := v.Item
	s.add("description", i.Description)
	s.add("impact", string(i.Impact))
	s.add("effort", string(i.Effort))
	s.add("rationale", i.Rationale)
	if p := i.Prior; p != nil {
		like := ""
		if p.Similar {
			like = ", of a similar one: " + p.Description
		}
		s.add("decided before", strings.TrimSpace(string(p.Decision)+" at "+s.at(p.At)+like+" "+p.Notes))
	}
	if i.Decision != "" {
		s.add("decision", string(i.Decision)+s.by(i.By, i.At))
		s.add("note", i.Notes)
	}
	if i.Batch != "" {
		s.add("batch", s.Ref.Unit+"/"+i.Batch+", "+statusWords(i.Status, false))
	}
	for _, q := range v.Questions {
		if q.Item == i.ID {
			s.question(q)
		}
	}
}

// plan adds the items and batches of a unit. reenable returns the command for a dropped item.
func (s *factSheet) plan(v *view.Decision, reenable func(item string) string) {
	u := v.Unit
	s.add("status", statusWords(v.Status, false))
	for _, i := range u.Items {
		decision := string(i.Decision)
		if decision == "" {
			decision = "open"
		}
		s.add("item "+i.ID, fmt.Sprintf("%s  %s/%s  %s", decision, i.Impact, i.Effort, unfold(i.Description)))
	}
	for _, g := range u.DroppedItems() {
		s.add("dropped "+g.ID, unfold(g.Description)+" ("+g.Reason+"); "+reenable(g.ID))
	}
	for _, q := range u.Questions() {
		s.question(q)
	}
	for _, b := range v.Plan.Batches {
		lines := []string{b.Title + ", " + statusWords(b.Status, false)}
		for _, part := range []struct {
			name string
			list []string
		}{{"items", b.Items}, {"changes", b.WriteTargets}, {"depends on", b.Reads}, {"comes after", b.After}} {
			if len(part.list) > 0 {
				lines = append(lines, part.name+": "+strings.Join(part.list, ", "))
			}
		}
		if b.Prompt != "" {
			lines = append(lines, "prompt: "+b.Prompt)
		}
		s.add("batch "+b.ID, strings.Join(lines, "\n"))
	}
	for _, w := range u.Warnings {
		s.add("warning", w)
	}
	for _, m := range u.Malformed {
		s.add("malformed", fmt.Sprintf("%s:%d: %s", m.Path, m.Line, m.Reason))
	}
	if u.Plan != nil && u.Plan.Approved != nil {
		s.add("approved", "by "+u.Plan.Approved.By+" at "+s.at(u.Plan.Approved.At))
	}
}

func unfold(text string) string { return strings.Join(strings.Fields(text), " ") }

func (s *factSheet) batch(b *view.BatchDetail) {
	s.add("batch", b.Title)
	s.add("status", statusWords(b.Status, false))
	for _, c := range b.Comments {
		state := "not sent yet"
		if c.Sent != nil {
			state = "sent at " + s.at(*c.Sent)
		}
		s.add(c.ID, c.String()+"\nby "+c.By+" at "+s.at(c.At)+", "+state)
	}
	if asked := b.Asked(); len(b.Checks) > 0 {
		s.add("sent back for", strings.Join(asked, "\n"))
	}
	s.add("summary", b.Summary())
	for _, c := range b.Checks {
		s.add(c.Phase.Name, checkedIn(c.Checked))
	}
	if b.Verification != nil {
		s.add("verification", b.Verification.Verdict.Verdict+": "+b.Verification.Report)
		s.add("issues", strings.Join(b.Verification.Issues, "\n"))
	}
	if r := b.Review; r != nil && r.State != progress.Wanted {
		s.add("review", r.State+s.by(r.By, r.At))
		s.add("comments", strings.Join(r.Comments, "\n"))
	}
	if l := b.Landed; l != nil {
		landed := "at " + s.at(l.At)
		for _, seq := range l.Landings {
			landed += fmt.Sprintf(", landing %d", seq)
		}
		s.add("landed", landed)
		s.add("commit", l.Commit)
		if l.Undone != nil {
			s.add("undone", "by "+l.Undone.By+" at "+s.at(l.Undone.At))
		}
	}
	for _, g := range b.Gaps {
		ref := progress.Ref{Kind: progress.GapKind, Unit: b.Unit, Batch: b.ID, Gap: g.Number}
		s.add(ref.String(), g.Path+": "+g.Reason)
	}
}

func checkedIn(c *flow.Checked) string {
	if c.State == flow.CheckSkipped {
		return "skipped: " + c.Skipped
	}
	if c.State == flow.CheckAsBefore {
		return "fails as before the run: " + c.AsBefore
	}
	return fmt.Sprintf("%s, %s, %s", c.State, term.Counted(len(c.Runs), "run"), term.Counted(c.Fixes, "fix attempt"))
}

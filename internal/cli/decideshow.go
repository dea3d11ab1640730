package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/dossier"
	"lockkeeper/internal/flow"
)

func (d *decider) showCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show REF",
		Short: "All that is known of what is to be decided, with the diff",
		Long: `Show all that is known of what is to be decided, or was: the prompt of a topic, an
item with its rationale, the batches of a plan with what they change, the diff of a
batch. The name of a unit alone shows its items, decisions and batches.`,
		Example: `  lockkeeper decide show item blog/posts/i3
  lockkeeper decide show blog/posts
  lockkeeper decide show review blog/posts/b1 --json | jq -r .diff`,
		Args: atLeast(1, "a reference"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return d.open(ctx, func() error {
				ref, rest, err := d.ref(ctx, args, kinds()...)
				switch {
				case err != nil:
					return err
				case len(rest) > 0:
					return usage(cmd, "shows one thing")
				}
				return d.show(ctx, ref)
			})
		},
	}
}

// sheet is what is shown of a reference.
type sheet struct {
	Ref   dossier.Ref    `json:"ref"`
	Waits bool           `json:"waits"` // for somebody's answer
	Facts []dossier.Fact `json:"facts"`
	Same  []dossier.Ref  `json:"same,omitempty"`
	Diff  string         `json:"diff,omitempty"`
	Unit  *dossier.Unit  `json:"unit,omitempty"` // of a plan
}

func (s *sheet) add(name, value string) {
	if value != "" {
		s.Facts = append(s.Facts, dossier.Fact{Name: name, Value: value})
	}
}

// show prints what is known of a reference.
func (d *decider) show(ctx context.Context, ref dossier.Ref) error {
	s, err := d.sheet(ctx, ref)
	if err != nil {
		return err
	}
	if d.json {
		return d.printJSON(s)
	}
	d.printSheet(d.Out, s)
	if next := s.next(); next != "" {
		d.advise(next)
	}
	return nil
}

func (d *decider) printSheet(to file, s *sheet) {
	fmt.Fprintln(to, d.painter(to)(bold, clean(s.Ref.String())))
	for _, f := range s.Facts {
		fmt.Fprintf(to, "  %s: %s\n", clean(f.Name), indented(f.Value))
	}
	if len(s.Same) > 0 {
		fmt.Fprintf(to, "  the same elsewhere: %s\n", names(s.Same))
	}
	for line := range strings.Lines(s.Diff) { // a program gets it as it is
		if isTerminal(to) {
			line = harmless(line) + "\n"
		}
		fmt.Fprint(to, line)
	}
}

// indented is text from elsewhere, harmless, its lines below each other.
func indented(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i, line := range lines {
		lines[i] = harmless(line)
	}
	return strings.Join(lines, "\n    ")
}

// harmless is a line from elsewhere that cannot play with the terminal.
func harmless(line string) string {
	return clean(strings.ReplaceAll(strings.TrimRight(line, "\r\n"), "\t", "    "))
}

// next is what can be said to it.
func (s *sheet) next() string {
	if !s.Waits {
		return ""
	}
	var ways []string
	for _, a := range answers() {
		if a.kind == s.Ref.Kind && a.word != "api" {
			ways = append(ways, "lockkeeper decide "+a.word+" "+s.Ref.String())
		}
	}
	return strings.Join(ways, ", or ")
}

// sheet collects what is known of a reference.
func (d *decider) sheet(ctx context.Context, ref dossier.Ref) (*sheet, error) {
	u, err := d.unit(ctx, ref.Unit)
	if err != nil {
		return nil, err
	}
	there, err := d.has(ctx, ref)
	if err == nil && !there {
		err = &lockkeeper.InputError{Field: "reference", Value: ref.String(), Reason: ref.Unit + " has no such " + string(ref.Kind), Next: "lockkeeper decide show plan " + ref.Unit}
	}
	if err != nil {
		return nil, err
	}
	s := &sheet{Ref: ref}
	queue, err := d.book.Waiting(ctx, d.units) // of all, for what says the same
	if err != nil {
		return nil, err
	}
	for _, g := range queue {
		if g.Ref == ref {
			s.Waits, s.Same = true, g.Same
			s.add("waits", fmt.Sprintf("since %s (%s), for you; frees %s", moment(g.Since), d.ago(g.Since), frees(g)))
		}
	}
	switch ref.Kind {
	case dossier.TopicKind:
		err = d.topicSheet(ctx, s, u)
	case dossier.ItemKind:
		item, _ := u.Item(ref.Item)
		s.item(u, item)
	case dossier.PlanKind:
		s.Unit = u
		s.plan(u)
	case dossier.ReviewKind:
		b, _ := u.Batch(ref.Batch)
		s.batch(u, b)
		s.Diff, err = d.diffOf(u.Name, b)
	case dossier.GapKind:
		b, _ := u.Batch(ref.Batch)
		s.gap(b, b.Gaps()[ref.Gap-1])
	}
	return s, err
}

func moment(t time.Time) string {
	if t.IsZero() {
		return "a time that is not known"
	}
	return stamp(t)
}

func by(name string, at time.Time) string {
	if name == "" {
		return ""
	}
	return ", by " + name + " at " + moment(at)
}

func (d *decider) topicSheet(ctx context.Context, s *sheet, u *dossier.Unit) error {
	for _, t := range u.Topics {
		if t.Slug != s.Ref.Topic {
			continue
		}
		s.add("prompt", t.Prompt)
		s.add("state", string(t.State)+by(t.By, t.At))
		s.add("method", t.Method)
		s.add("text", t.Text)
	}
	s.add("controller", u.Analysis.Purpose)
	asked, err := d.book.ByAPI(ctx, u)
	for _, slug := range asked {
		if slug == s.Ref.Topic {
			s.add("asked", "the next run asks the Messages API")
		}
	}
	return err
}

func (s *sheet) item(u *dossier.Unit, i dossier.Item) {
	s.add("description", i.Description)
	s.add("impact", string(i.Impact))
	s.add("effort", string(i.Effort))
	s.add("rationale", i.Rationale)
	if p := i.Prior; p != nil {
		like := ""
		if p.Similar {
			like = ", of a similar one: " + p.Description
		}
		s.add("decided before", strings.TrimSpace(string(p.Decision)+" at "+moment(p.At)+like+" "+p.Notes))
	}
	if i.Decision != "" {
		s.add("decision", string(i.Decision)+by(i.By, i.At))
		s.add("note", i.Notes)
	}
	for _, b := range u.Batches {
		for _, id := range b.Items {
			if id == i.ID {
				s.add("batch", u.Name+"/"+b.ID+", "+b.Status)
			}
		}
	}
}

// plan is a unit as a whole: what was decided, and the batches.
func (s *sheet) plan(u *dossier.Unit) {
	s.add("status", u.Status())
	for _, i := range u.Items {
		decision := string(i.Decision)
		if decision == "" {
			decision = "open"
		}
		s.add("item "+i.ID, fmt.Sprintf("%s  %s/%s  %s", decision, i.Impact, i.Effort, oneLine(i.Description)))
	}
	for _, g := range u.Gone() {
		s.add("dropped "+g.ID, oneLine(g.Description)+" ("+g.Reason+"); lockkeeper decide reenable "+u.Name+"/"+g.ID)
	}
	for _, b := range u.Batches {
		lines := []string{b.Title + ", " + b.Status}
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
		s.add("approved", "by "+u.Plan.Approved.By+" at "+moment(u.Plan.Approved.At))
	}
}

func (s *sheet) batch(u *dossier.Unit, b *dossier.Batch) {
	s.add("batch", b.Title)
	s.add("status", b.Status)
	if b.Applied != nil {
		s.add("summary", b.Applied.Summary)
	}
	for _, checked := range []struct {
		name string
		*flow.Checked
	}{{"tests", b.Tested}, {"ci", b.CI}} {
		if checked.Checked != nil {
			s.add(checked.name, checkedIn(checked.Checked))
		}
	}
	if b.Verification != nil {
		s.add("verification", b.Verification.Verdict.Verdict+": "+b.Verification.Report)
		s.add("issues", strings.Join(b.Verification.Issues, "\n"))
	}
	if r := b.Review; r != nil && r.State != dossier.Wanted {
		s.add("review", r.State+by(r.By, r.At))
		s.add("comments", strings.Join(r.Comments, "\n"))
	}
	if l := b.Landed; l != nil {
		s.add("landed", fmt.Sprintf("at %s, landings %v", moment(l.At), l.Landings))
		s.add("commit", l.Commit)
		if l.Undone != nil {
			s.add("undone", "by "+l.Undone.By+" at "+moment(l.Undone.At))
		}
	}
	for _, g := range b.Gaps() {
		ref := dossier.Ref{Kind: dossier.GapKind, Unit: u.Name, Batch: b.ID, Gap: g.Number}
		s.add(ref.String(), g.Path+": "+g.Reason)
	}
}

func checkedIn(c *flow.Checked) string {
	text := "failed"
	switch {
	case c.Skipped != "":
		text = "skipped: " + c.Skipped
	case c.Passed:
		text = "passed"
	}
	return fmt.Sprintf("%s, %s, %s", text, counted(len(c.Runs), "run"), counted(c.Fixes, "fix attempt"))
}

func (s *sheet) gap(b *dossier.Batch, g dossier.Gap) {
	s.add("path", g.Path)
	s.add("reason", g.Reason)
	s.add("batch", b.ID+", "+b.Title)
	s.add("phase", g.Phase)
	s.add("planned by", g.Planned)
	if g.Rescue != "" {
		s.add("kept", "lockkeeper rescue show "+g.Rescue)
	}
	s.add("answer", strings.TrimPrefix(g.Answer+by(g.By, time.Time{}), ", "))
}

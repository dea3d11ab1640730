package acts

import (
	"context"
	"fmt"
	"strings"
	"time"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
)

// Sheet is everything known about a decision, open or not, as facts for a terminal.
type Sheet struct {
	Ref     progress.Ref    `json:"ref"`
	Waits   bool            `json:"waits"`           // it is open
	Since   time.Time       `json:"since,omitzero"`  // like the next four, only if it is open
	Frees   int             `json:"frees,omitempty"` // items that can start after the answer
	Left    int             `json:"left,omitempty"`  // answers needed for that, including this one
	Version string          `json:"version,omitempty"`
	Facts   []progress.Fact `json:"facts"`
	Same    []progress.Ref  `json:"same,omitempty"`
	Diff    string          `json:"diff,omitempty"`
	Unit    *progress.Unit  `json:"unit,omitempty"` // of a plan
}

func (s *Sheet) add(name, value string) {
	if value != "" {
		s.Facts = append(s.Facts, progress.Fact{Name: name, Value: value})
	}
}

// Sheet collects what is known about a decision.
func (d *Decider) Sheet(ctx context.Context, ref progress.Ref) (*Sheet, error) {
	u, err := d.need(ctx, ref)
	if err != nil {
		return nil, err
	}
	s := &Sheet{Ref: ref, Facts: []progress.Fact{}}
	queue, err := d.Waiting(ctx) // of every unit, to find equal items
	if err != nil {
		return nil, err
	}
	for _, g := range queue {
		if g.Ref == ref {
			s.Waits, s.Since, s.Frees, s.Left, s.Version, s.Same = true, g.Since, g.Frees, g.Left, g.Version, g.Same
		}
	}
	switch ref.Kind {
	case progress.TopicKind:
		err = d.topicSheet(ctx, s, u)
	case progress.ItemKind:
		item, _ := u.Item(ref.Item)
		s.item(u, item)
	case progress.PlanKind:
		s.Unit = u
		d.planSheet(s, u)
	case progress.ReviewKind:
		b, _ := u.Batch(ref.Batch)
		s.batch(u, b)
		s.Diff, err = d.Diff(u.Name, b)
	case progress.GapKind:
		b, _ := u.Batch(ref.Batch)
		s.gap(b, b.Gaps()[ref.Gap-1])
		s.Diff, err = d.changeOf(ctx, ref)
	}
	return s, err
}

// Moment formats a time in the local time zone. A document written by hand has no time.
func Moment(t time.Time) string {
	if t.IsZero() {
		return "an unknown time"
	}
	return t.Local().Format(time.RFC3339)
}

func by(name string, at time.Time) string {
	if name == "" {
		return ""
	}
	return ", by " + name + " at " + Moment(at)
}

func (d *Decider) topicSheet(ctx context.Context, s *Sheet, u *progress.Unit) error {
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
	asked, err := d.Book.ByAPI(ctx, u)
	for _, slug := range asked {
		if slug == s.Ref.Topic {
			s.add("asked", "the next run asks the Messages API")
		}
	}
	return err
}

func (s *Sheet) item(u *progress.Unit, i progress.Item) {
	s.add("description", i.Description)
	s.add("impact", string(i.Impact))
	s.add("effort", string(i.Effort))
	s.add("rationale", i.Rationale)
	if p := i.Prior; p != nil {
		like := ""
		if p.Similar {
			like = ", of a similar one: " + p.Description
		}
		s.add("decided before", strings.TrimSpace(string(p.Decision)+" at "+Moment(p.At)+like+" "+p.Notes))
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

// planSheet adds the items and batches of a unit.
func (d *Decider) planSheet(s *Sheet, u *progress.Unit) {
	s.add("status", u.Status())
	for _, i := range u.Items {
		decision := string(i.Decision)
		if decision == "" {
			decision = "open"
		}
		s.add("item "+i.ID, fmt.Sprintf("%s  %s/%s  %s", decision, i.Impact, i.Effort, oneLine(i.Description)))
	}
	for _, g := range u.DroppedItems() {
		s.add("dropped "+g.ID, oneLine(g.Description)+" ("+g.Reason+"); "+d.Command("decide", "reenable", u.Name+"/"+g.ID))
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
		s.add("approved", "by "+u.Plan.Approved.By+" at "+Moment(u.Plan.Approved.At))
	}
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func (s *Sheet) batch(u *progress.Unit, b *progress.Batch) {
	s.add("batch", b.Title)
	s.add("status", b.Status)
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
		s.add("review", r.State+by(r.By, r.At))
		s.add("comments", strings.Join(r.Comments, "\n"))
	}
	if l := b.Landed; l != nil {
		landed := "at " + Moment(l.At)
		for _, seq := range l.Landings {
			landed += fmt.Sprintf(", landing %d", seq)
		}
		s.add("landed", landed)
		s.add("commit", l.Commit)
		if l.Undone != nil {
			s.add("undone", "by "+l.Undone.By+" at "+Moment(l.Undone.At))
		}
	}
	for _, g := range b.Gaps() {
		ref := progress.Ref{Kind: progress.GapKind, Unit: u.Name, Batch: b.ID, Gap: g.Number}
		s.add(ref.String(), g.Path+": "+g.Reason)
	}
}

func checkedIn(c *flow.Checked) string {
	if c.State == flow.CheckSkipped {
		return "skipped: " + c.Skipped
	}
	return fmt.Sprintf("%s, %s, %s", c.State, counted(len(c.Runs), "run"), counted(c.Fixes, "fix attempt"))
}

func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

func (s *Sheet) gap(b *progress.Batch, g progress.Gap) {
	s.add("path", g.Path)
	s.add("reason", g.Reason)
	s.add("batch", b.ID+", "+b.Title)
	s.add("phase", g.Phase)
	s.add("planned by", g.Planned)
	if g.Rescue != "" {
		s.add("kept", "lockkeeper rescue show "+g.Rescue)
	}
	answer := g.Answer
	if g.By != "" { // the time is not stored
		answer += ", by " + g.By
	}
	s.add("answer", answer)
}

package acts

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
)

// A Weighed is an open decision with what a person weighs: ratings, files and risks.
type Weighed struct {
	progress.Decision
	Impact  string   `json:"impact,omitempty"` // of an item, or the highest of the items of the batches in question
	Effort  string   `json:"effort,omitempty"`
	Risks   []string `json:"risks,omitempty"`   // why a person should look at it closely
	Batches int      `json:"batches,omitempty"` // batches that a plan would start

	batch string
	paths []string
}

// manyFiles is the largest number of files of a batch that is not risky.
const manyFiles = 10

// Weigh returns a decision of a unit with what a person weighs.
func Weigh(f flow.Flow, u *progress.Unit, g progress.Decision) Weighed {
	w := Weighed{Decision: g}
	switch g.Ref.Kind {
	case progress.ItemKind:
		if item, ok := u.Item(g.Ref.Item); ok {
			w.Impact, w.Effort = string(item.Impact), string(item.Effort)
		}
	case progress.PlanKind:
		for i := range u.Batches {
			if b := &u.Batches[i]; !flow.IsDone(b.Status) {
				w.Batches++
				w.weighBatch(f, u, b)
			}
		}
		if n := len(u.Warnings); n > 0 {
			w.Risks = append(w.Risks, fmt.Sprintf("the plan has %d warnings", n))
		}
	case progress.ReviewKind, progress.GapKind:
		w.batch = g.Ref.Unit + "/" + g.Ref.Batch
		b, ok := u.Batch(g.Ref.Batch)
		switch {
		case ok && g.Ref.Kind == progress.ReviewKind:
			w.weighBatch(f, u, b)
			if len(b.Gaps()) > 0 {
				w.Risks = append(w.Risks, "its agent changed files outside the plan")
			}
		case ok:
			w.rate(u, b)
		}
		if g.Ref.Kind == progress.GapKind {
			w.paths = []string{g.Title}
		}
	}
	return w
}

// rate raises the ratings to those of the items of a batch.
func (w *Weighed) rate(u *progress.Unit, b *progress.Batch) {
	higher := func(a, b string) string {
		if slices.Index(levels, b) > slices.Index(levels, a) {
			return b
		}
		return a
	}
	w.Effort = higher(w.Effort, string(b.Effort))
	for _, id := range b.Items {
		if item, ok := u.Item(id); ok {
			w.Impact, w.Effort = higher(w.Impact, string(item.Impact)), higher(w.Effort, string(item.Effort))
		}
	}
}

// weighBatch adds the files and the risks of a batch.
func (w *Weighed) weighBatch(f flow.Flow, u *progress.Unit, b *progress.Batch) {
	w.rate(u, b)
	w.paths = append(w.paths, b.WriteTargets...)
	var foreign []string
	for _, path := range b.WriteTargets {
		if f.UnitsOwnFiles && !slices.Contains(b.Reads, path) && !strings.Contains(path, u.Name) && (u.Analysis == nil || !slices.Contains(u.Analysis.Files, path)) {
			foreign = append(foreign, path)
		}
	}
	if b.Effort == flow.High {
		w.Risks = append(w.Risks, b.ID+" takes high effort")
	}
	if n := len(b.WriteTargets); n > manyFiles {
		w.Risks = append(w.Risks, fmt.Sprintf("%s changes %d files", b.ID, n))
	}
	if n := len(foreign); n > 0 {
		what := b.ID + " changes " + foreign[0]
		if n > 1 {
			what += fmt.Sprintf(" and %d more", n-1)
		}
		w.Risks = append(w.Risks, what+", outside of the unit's own files")
	}
}

// Field returns the values of a field of DecisionFields.
func (w Weighed) Field(name string) []string {
	one := func(value string) []string {
		if value == "" {
			return nil
		}
		return []string{value}
	}
	switch name {
	case "kind":
		return []string{string(w.Ref.Kind)}
	case "unit":
		return []string{w.Ref.Unit}
	case "batch":
		return one(w.batch)
	case "path":
		return w.paths
	case "impact":
		return one(w.Impact)
	case "effort":
		return one(w.Effort)
	case "risk":
		if len(w.Risks) > 0 {
			return []string{"yes"}
		}
		return []string{"no"}
	case "text":
		text := w.Title + "\n" + w.Ref.String()
		for _, f := range w.Facts {
			text += "\n" + f.Value
		}
		return []string{text}
	}
	return nil
}

// Matching lists the open decisions of some kinds that meet conditions.
func (d *Decider) Matching(ctx context.Context, where string, kinds ...progress.Kind) (list []Weighed, err error) {
	w, err := ParseWhere(where, DecisionFields)
	if err != nil {
		return nil, err
	}
	queue, err := d.Waiting(ctx)
	if err != nil {
		return nil, err
	}
	units := map[string]*progress.Unit{}
	for _, g := range queue {
		if !slices.Contains(kinds, g.Ref.Kind) {
			continue
		}
		if units[g.Ref.Unit] == nil {
			if units[g.Ref.Unit], err = d.Tracker.Unit(ctx, g.Ref.Unit); err != nil {
				return nil, err
			}
		}
		if one := Weigh(d.Flow, units[g.Ref.Unit], g); w.Selects(one) {
			list = append(list, one)
		}
	}
	return list, nil
}

// GiveMany gives one answer to many decisions. What changed since the person saw it is skipped, and the
// verdict says so; each other answer still names its version.
func (d *Decider) GiveMany(ctx context.Context, word string, refs []progress.Ref, s AnswerInput) (Verdict, error) {
	queue, err := d.Waiting(ctx)
	if err != nil {
		return Verdict{}, err
	}
	open := map[progress.Ref]*progress.Decision{}
	for i := range queue {
		open[queue[i].Ref] = &queue[i]
	}
	var skipped []error
	var left []progress.Ref
	for _, r := range refs {
		now, waits := open[r]
		seen, named := s.Seen[r]
		switch {
		case !waits:
			skipped = append(skipped, &progress.StaleError{Ref: r, Seen: seen, Became: "it is no longer open"})
		case named && now.Version != seen:
			skipped = append(skipped, &progress.StaleError{Ref: r, Seen: seen, Now: now, Changed: now.Facts})
		default:
			left = append(left, r)
		}
	}
	if len(left) == 0 && len(skipped) > 0 {
		v, err := d.finish(ctx, Verdict{})
		v.Refused = skipped
		return v, err
	}
	s.Only = true // the answer is only for what was chosen
	v, err := d.Give(ctx, word, left, s)
	v.Refused = append(v.Refused, skipped...)
	return v, err
}

// GiveWhere gives one answer to the open decisions that meet conditions now.
func (d *Decider) GiveWhere(ctx context.Context, word, where string, s AnswerInput) (Verdict, error) {
	if where == "" {
		return Verdict{}, &lockkeeper.InputError{Field: "where", Reason: "required", Next: "write conditions, or all"}
	}
	list, err := d.Matching(ctx, where, KindsOf(word)...)
	if err != nil {
		return Verdict{}, err
	}
	if len(list) == 0 {
		return Verdict{}, &lockkeeper.RefusedError{Act: word, Reason: "no open decision that it answers meets " + where, Next: d.Command("decide")}
	}
	refs := make([]progress.Ref, len(list))
	if s.Seen == nil {
		s.Seen = Seen{}
	}
	for i, one := range list {
		refs[i] = one.Ref
		if _, known := s.Seen[one.Ref]; !known {
			s.Seen[one.Ref] = one.Version
		}
	}
	return d.GiveMany(ctx, word, refs, s)
}

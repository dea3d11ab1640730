package view

import (
	"context"
	"errors"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/store"
)

// Gate tells all that is known of what is to be decided in a flow, or was; "": in the flow
// under way, or last.
func (l *Look) Gate(ctx context.Context, flowName string, ref progress.Ref) (*GateDetail, error) {
	s, err := l.scene(ctx, flowName, func(*scene, store.Reader) error { return nil })
	if err != nil {
		return nil, err
	}
	p, err := l.papers(ctx, s.flow)
	if err != nil {
		return nil, err
	}
	u, known := p.find(ref.Unit)
	switch {
	case !known:
		return nil, &lockkeeper.InputError{Field: "unit", Value: ref.Unit, Reason: "the flow " + s.flow + " has no such unit", Next: "lockkeeper decide"}
	case u.Unit == nil:
		return nil, u.unread
	}
	asked, err := l.asked(ctx, p)
	if err != nil {
		return nil, err
	}
	d := &GateDetail{Moment: s.Moment, Flow: s.flow, Waiting: Waiting{Decision: progress.Decision{Ref: ref}}, Status: u.Status(), Malformed: u.Malformed}
	if u.Analysis != nil {
		d.Purpose = u.Analysis.Purpose
	}
	for _, g := range p.gates() {
		if g.Ref == ref {
			d.Waiting, d.Waits = waitingOf(g, asked), true
		}
	}
	if err := l.fill(d, p, u.Unit); err != nil {
		return nil, err
	}
	return d, nil
}

// fill adds what a gate is about.
func (l *Look) fill(d *GateDetail, p *papers, u *progress.Unit) (err error) {
	missing := func() error {
		return &lockkeeper.InputError{Field: "reference", Value: d.Ref.String(), Reason: u.Name + " has no such " + string(d.Ref.Kind), Next: "lockkeeper decide show plan " + u.Name}
	}
	batch, known := u.Batch(d.Ref.Batch)
	switch d.Ref.Kind {
	case progress.TopicKind:
		for i := range u.Topics {
			if u.Topics[i].Slug == d.Ref.Topic {
				d.Topic = &u.Topics[i]
			}
		}
		if d.Topic == nil {
			return missing()
		}
		d.title(d.Topic.Prompt)
	case progress.ItemKind:
		item, ok := u.Item(d.Ref.Item)
		if !ok {
			return missing()
		}
		d.Item = &ItemDetail{Item: item}
		if b, ok := batchOf(u, item.ID); ok {
			d.Item.Batch, d.Item.Status = b.ID, b.Status
		}
		d.title(item.Description)
	case progress.PlanKind:
		d.Plan = planOf(u)
		d.title("the batches of " + u.Name)
	case progress.ReviewKind:
		if !known {
			return missing()
		}
		d.title(batch.Title)
		d.Review, err = l.batchDetail(p, u, batch, true)
	case progress.GapKind:
		gaps := []progress.Gap{}
		if known {
			gaps = batch.Gaps()
		}
		if d.Ref.Gap < 1 || d.Ref.Gap > len(gaps) {
			return missing()
		}
		d.title(gaps[d.Ref.Gap-1].Path)
		d.Gap, err = l.gapDetail(batch, gaps[d.Ref.Gap-1])
	default:
		return missing()
	}
	return err
}

// title names what does not wait any more.
func (d *GateDetail) title(text string) {
	if !d.Waits {
		d.Title = strings.Join(strings.Fields(text), " ")
	}
}

func planOf(u *progress.Unit) *PlanDetail {
	d := &PlanDetail{Items: listOf(u.Items), Gone: listOf(u.DroppedItems()), Batches: []BatchDetail{}, Warnings: listOf(u.Warnings)}
	if u.Plan != nil {
		d.Approved = u.Plan.Approved
	}
	for i := range u.Batches {
		b := &u.Batches[i]
		d.Batches = append(d.Batches, BatchDetail{Unit: u.Name, Batch: *b, Does: itemsOf(u, b), Gaps: listOf(b.Gaps())})
	}
	return d
}

// batchDetail is a batch, with what it changes if that is wanted.
func (l *Look) batchDetail(p *papers, u *progress.Unit, b *progress.Batch, withDiff bool) (*BatchDetail, error) {
	d := &BatchDetail{Unit: u.Name, Batch: *b, Does: itemsOf(u, b), Gaps: listOf(b.Gaps())}
	for _, g := range u.OpenDecisions() {
		if g.Ref.Kind == progress.ReviewKind && g.Ref.Batch == b.ID {
			d.Version = g.Version
		}
	}
	if !withDiff {
		return d, nil
	}
	var err error
	d.Diff, err = l.diffOf(p, u.Name, b)
	return d, err
}

// diffOf is what a batch changes, file by file.
func (l *Look) diffOf(p *papers, unit string, b *progress.Batch) (*Diff, error) {
	desk := acts.Decider{App: l.app, Flow: p.flow, Book: p.book}
	d := &Diff{Files: []FileDiff{}}
	for _, f := range b.Files() {
		// The desk shows what a batch changes: here one of this file alone.
		text, err := desk.Diff(unit, &progress.Batch{Batch: flow.Batch{ID: b.ID}, Applied: &flow.Applied{Files: []flow.File{f}}})
		if err != nil {
			return nil, err
		}
		d.add(fileDiff(f.Path, f.Old.Exists(), f.New.Exists(), text))
	}
	return d, nil
}

// fileDiff is a file of a diff, or a note where there is none.
func fileDiff(path string, was, is bool, text string) FileDiff {
	f := FileDiff{Path: path, Change: "changed", Text: text}
	switch {
	case !was:
		f.Change = "added"
	case !is:
		f.Change = "deleted"
	}
	if text != "" && !strings.HasPrefix(text, "diff ") {
		f.Note, f.Text = strings.TrimSpace(strings.TrimPrefix(text, path+":")), ""
		return f
	}
	head := true
	for line := range strings.Lines(f.Text) {
		switch {
		case strings.HasPrefix(line, "@@"):
			head = false
		case head:
		case line[0] == '+':
			f.Added++
		case line[0] == '-':
			f.Removed++
		}
	}
	return f
}

func (d *Diff) add(f FileDiff) {
	d.Files = append(d.Files, f)
	d.Added, d.Removed = d.Added+f.Added, d.Removed+f.Removed
}

// gapDetail is a refused change, with what is kept of it.
func (l *Look) gapDetail(b *progress.Batch, g progress.Gap) (*GapDetail, error) {
	d := &GapDetail{Gap: g, Batch: b.ID, Title: b.Title}
	if g.Rescue == "" {
		return d, nil
	}
	e, err := l.app.Shelf().Get(g.Rescue)
	var unknown *lockkeeper.InputError
	if errors.As(err, &unknown) {
		return d, nil // it was dropped since
	}
	if err != nil {
		return nil, err
	}
	d.Kept = &e
	text, note, err := acts.Difference(l.app, e)
	d.Diff = keptDiff(e.Path, e.Base.Exists(), !e.Delete, text, note)
	return d, err
}

// keptDiff is the diff of one kept file.
func keptDiff(path string, was, is bool, text, note string) *Diff {
	d := &Diff{}
	f := fileDiff(path, was, is, text)
	if note != "" {
		f.Note = note
	}
	d.add(f)
	return d
}

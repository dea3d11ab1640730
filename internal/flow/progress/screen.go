package progress

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/documents"
)

// MergeBatch is the id of the only batch of a controller in a flow with screens.
const MergeBatch = "merge"

type Screen struct {
	Doc       *flow.ScreenDoc `json:"doc,omitempty"`
	Excluded  *Exclusion      `json:"excluded,omitempty"` // set if the screen is not merged
	Malformed []Malformed     `json:"malformed,omitempty"`
	Documents []Document      `json:"papers,omitempty"`
	Status    string          `json:"status"` // status of the screen; when it is complete, the merge does not wait for the screen
}

// An Exclusion records who excluded a screen, a unit or a batch, and why.
type Exclusion struct {
	By     string    `json:"by"`
	At     time.Time `json:"at"`
	Reason string    `json:"reason"`

	Follows bool `json:"follows,omitempty"` // the batch is excluded because it comes after an excluded one
}

type screenDocs struct {
	doc      loaded[flow.ScreenDoc]
	excluded loaded[Exclusion]
}

func (b *Tracker) Screen(ctx context.Context, module, controller, name string) (*Screen, error) {
	s, _, err := b.screen(ctx, module, controller, name)
	return s, err
}

func (b *Tracker) screenFolder(module, controller, name string) *documents.Folder {
	unit := flow.ManifestScreen{Module: module, Controller: controller}.Unit()
	return b.screens.Screen(unit, name, module, controller, name)
}

func (b *Tracker) screen(ctx context.Context, module, controller, name string) (s *Screen, p screenDocs, err error) {
	var u Unit // collects malformed documents
	r := newReader(ctx, &u, b.screenFolder(module, controller, name))
	defer func() { err = errors.Join(err, r.open.Close()) }()
	p.doc = load[flow.ScreenDoc](ctx, r, flow.AnalysisFile, func(body []byte) error { return flow.Check(flow.ScreenFile, body) })
	p.excluded = private[Exclusion](ctx, r, excludedFile)
	if r.err != nil {
		return nil, p, fmt.Errorf("screen %s: %w", name, r.err)
	}
	s = &Screen{Doc: p.doc.value, Excluded: p.excluded.value, Malformed: u.Malformed, Documents: u.Documents, Status: flow.Complete}
	if s.Doc == nil && s.Excluded == nil {
		analyze, _ := b.flow.PhaseOf(flow.AnalysisFile)
		s.Status = analyze.Status
	}
	return s, p, nil
}

// MoveDocuments moves documents from where an earlier version stored them.
func (b *Tracker) MoveDocuments(ctx context.Context, screens []flow.ManifestScreen) error {
	if err := b.documents.Move(ctx); err != nil {
		return err
	}
	for _, s := range screens {
		if err := b.screenFolder(s.Module, s.Controller, s.Name).Move(ctx); err != nil {
			return err
		}
	}
	return nil
}

// PutScreen stores the findings on a screen and replaces earlier ones.
func (b *Tracker) PutScreen(ctx context.Context, module, controller, name string, doc flow.ScreenDoc, calls []flow.Call) error {
	if err := b.check(flow.ScreenFile, doc); err != nil {
		return err
	}
	return b.onScreen(ctx, module, controller, name, func(_ *Screen, p screenDocs) error {
		if equal(p.doc.value, doc) {
			return nil
		}
		return b.write(ctx, p.doc.stored, doc, author(calls), calls...)
	})
}

func (b *Tracker) ExcludeScreen(ctx context.Context, module, controller, name, reason, by string) error {
	if err := named(by); err != nil {
		return err
	}
	if strings.TrimSpace(reason) == "" {
		return &lockkeeper.InputError{Field: "reason", Value: reason, Reason: "required", Next: "say why the screen is excluded"}
	}
	return b.onScreen(ctx, module, controller, name, func(s *Screen, p screenDocs) error {
		if s.Excluded != nil {
			return refused("exclude screen "+name, "include it again first", "it was excluded by %s at %s", s.Excluded.By, stamp(s.Excluded.At))
		}
		return b.write(ctx, p.excluded.stored, Exclusion{By: by, At: b.time(), Reason: reason}, by)
	})
}

func (b *Tracker) IncludeScreen(ctx context.Context, module, controller, name, by string) error {
	if err := named(by); err != nil {
		return err
	}
	return b.onScreen(ctx, module, controller, name, func(s *Screen, p screenDocs) error {
		if s.Excluded == nil {
			return refused("include screen "+name, "exclude it to leave it out of the merge", "it is not excluded")
		}
		return p.excluded.remove(ctx)
	})
}

// onScreen does the same as act, for a screen.
func (b *Tracker) onScreen(ctx context.Context, module, controller, name string, do func(*Screen, screenDocs) error) (err error) {
	release, err := lockFolder(ctx, b.screenFolder(module, controller, name).Dir())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	return retryChanged(ctx, func() error {
		s, p, err := b.screen(ctx, module, controller, name)
		if err != nil {
			return err
		}
		return do(s, p)
	})
}

// PutMerge stores the plan of a controller: one batch with the write targets of all its screens.
// The plan is approved unless the flow reviews plans. Without write targets the plan is empty.
func (b *Tracker) PutMerge(ctx context.Context, controller string, docs []flow.ScreenDoc) error {
	plan := flow.Plan{Batches: []flow.Batch{}}
	if targets := flow.Aggregate(docs); len(targets) > 0 {
		plan.Batches = append(plan.Batches, flow.Batch{ID: MergeBatch, Title: "Merge what was found on the screens of " + controller, Items: []string{}, WriteTargets: targets})
	}
	return b.PutTasks(ctx, controller, plan)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/progress"
	blog "lockkeeper/internal/flow/sample"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/view"
)

// The size of the codebase, and the time limits in milliseconds.
const (
	viewGrants      = 10_000
	viewControllers = 500
	viewStateLimit  = 50.0
	viewBoardLimit  = 100.0
)

// viewed opens a codebase of its own, with a viewer.
func viewed(ctx context.Context, b *bench, name string, write func(root string) error) (*project.Project, *view.Reader, error) {
	root := filepath.Join(b.dir, name, "app")
	if err := errors.Join(os.MkdirAll(filepath.Dir(root), 0o700), write(root)); err != nil {
		return nil, nil, err
	}
	s := project.Settings{Dir: root, Env: func(variable string) (string, bool) {
		return filepath.Join(b.dir, name, "state"), variable == "XDG_STATE_HOME"
	}}
	if _, err := project.Init(ctx, s, project.InitOptions{}); err != nil {
		return nil, nil, err
	}
	a, err := project.Open(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	return a, view.New(a), nil
}

// looks is the median time, in milliseconds, of a view that was read before.
func (b *bench) looks(look func() error) (float64, error) {
	var took []float64
	for range 1 + b.rounds*slicesPerRound {
		began := monotonic()
		if err := look(); err != nil {
			return 0, err
		}
		took = append(took, float64(monotonic()-began)/1e6)
	}
	return median(took[1:]), nil
}

// viewState measures the whole state of a space with many grants, and its JSON.
func viewState(ctx context.Context, b *bench) (_ []row, err error) {
	a, look, err := viewed(ctx, b, "view-state", func(root string) error { return os.MkdirAll(root, 0o700) })
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	for i := range viewGrants {
		req := lockkeeper.Request{Holder: fmt.Sprint("agent-", i), Metadata: map[string]string{"reason": fmt.Sprint("part ", i)},
			Locks: writes([]string{fmt.Sprintf("app/controllers/page%d.rb", i), fmt.Sprintf("app/views/page%d.erb", i), fmt.Sprintf("test/page%d.rb", i)})}
		if _, err := a.Locks.TryAcquire(ctx, req); err != nil {
			return nil, err
		}
	}
	size := 0
	took, err := b.looks(func() error {
		st, err := look.State(ctx)
		if err != nil {
			return err
		}
		text, err := st.JSON()
		size = len(text)
		return err
	})
	if err != nil {
		return nil, err
	}
	return []row{row{What: fmt.Sprintf("The state with %d grants, as JSON", viewGrants), Ours: ms(took), Peer: "–",
		How: fmt.Sprintf("All grants, items and units of a space in SQLite, of one moment: %.1f MB.", float64(size)/1e6)}.atMost(took, viewStateLimit, "%.0f ms")}, nil
}

// viewBoard measures a board of many controllers whose documents were read before.
func viewBoard(ctx context.Context, b *bench) (_ []row, err error) {
	a, look, err := viewed(ctx, b, "view-board", func(root string) error {
		return blog.Large{Controllers: viewControllers, Seed: 7}.Write(root)
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	if err := planAll(ctx, a); err != nil {
		return nil, err
	}
	began := monotonic()
	if _, err := look.Board(ctx, ""); err != nil {
		return nil, err
	}
	cold := float64(monotonic()-began) / 1e6
	took, err := b.looks(func() error {
		board, err := look.Board(ctx, "")
		if err == nil && (len(board.Units) != viewControllers || board.Statuses["applying"] != viewControllers) {
			err = fmt.Errorf("the board has %d units: %v", len(board.Units), board.Statuses)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return []row{row{What: fmt.Sprintf("The board of %d controllers", viewControllers), Ours: ms(took), Peer: ms(cold) + " (the first time)",
		How: "The status of every controller and its batches, from documents and the queue; unchanged documents are not read again."}.atMost(took, viewBoardLimit, "%.0f ms")}, nil
}

func ms(took float64) string { return fmt.Sprintf("%.1f ms", took) }

// planAll gives every controller the documents of one whose batches are planned, so old
// that they are relied on.
func planAll(ctx context.Context, a *project.Project) error {
	units, _, err := conduct.Discovered(a, "controllers")
	if err != nil {
		return err
	}
	tracker, _, docs, err := conduct.OpenDocuments(a, "controllers")
	if err != nil {
		return err
	}
	if err := plan(ctx, tracker, units[0]); err != nil {
		return err
	}
	for _, unit := range units {
		if unit != units[0] {
			if err := os.CopyFS(docs.Unit(unit).Dir(), os.DirFS(docs.Unit(units[0]).Dir())); err != nil {
				return err
			}
		}
		err := filepath.WalkDir(docs.Unit(unit).Dir(), func(path string, _ os.DirEntry, err error) error {
			hourAgo := time.Now().Add(-time.Hour)
			return errors.Join(err, os.Chtimes(path, hourAgo, hourAgo))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// plan brings a controller to where its batches can start.
func plan(ctx context.Context, tracker *progress.Tracker, unit string) error {
	extract, ready := flow.Extract{}, flow.Synthesis{Dropped: []flow.Dropped{}}
	var batches []flow.Batch
	var choices []progress.Choice
	for i := range 3 {
		id, what := fmt.Sprint("i", i+1), fmt.Sprint("Improve part ", i+1)
		extract.Items = append(extract.Items, flow.Possible{ID: id, Description: what})
		ready.Items = append(ready.Items, flow.Ready{ID: id, Description: what, Impact: flow.High, Effort: flow.High, Rationale: "it is better"})
		choices = append(choices, progress.Choice{Item: id, Decision: flow.Todo})
		batches = append(batches, flow.Batch{ID: fmt.Sprint("b", i+1), Title: what, Items: []string{id}, WriteTargets: []string{fmt.Sprintf("app/part%d.rb", i+1)}})
	}
	analysis := flow.Analysis{Purpose: "pages", Behaviour: "it shows them", Screens: []flow.Served{}, Relations: []flow.Relation{}, Files: []string{}, Topics: []flow.Topic{}}
	for _, step := range []func() error{
		func() error { return tracker.PutAnalysis(ctx, unit, analysis, nil) },
		func() error { return tracker.PutExtract(ctx, unit, extract, nil) },
		func() error { return tracker.PutSynthesis(ctx, unit, ready, nil) },
		func() error { return tracker.Audit(ctx, unit) },
		func() error { return tracker.Decide(ctx, unit, "bench", choices...) },
		func() error { return tracker.PutPlan(ctx, unit, batches, nil) },
		func() error { return tracker.ApprovePlan(ctx, unit, "bench") },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

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

// These are the size of the codebase, and the time limits in milliseconds.
const (
	viewGrants      = 10_000
	viewControllers = 500
	viewStateLimit  = 50.0
	viewBoardLimit  = 100.0
)

// viewed creates a codebase, and opens it and its views.
func viewed(b *bench, name string, write func(root string) error) (*project.Project, *view.Reader) {
	root := filepath.Join(b.dir, name, "app")
	check(os.MkdirAll(filepath.Dir(root), 0o700))
	check(write(root))
	s := project.Settings{Dir: root, Env: func(variable string) (string, bool) {
		return filepath.Join(b.dir, name, "state"), variable == "XDG_STATE_HOME"
	}}
	get(project.Init(b.ctx, s, project.InitOptions{}))
	p := get(project.Open(b.ctx, s))
	b.cleanup(p.Close)
	return p, view.New(p)
}

// repeat returns the median time, in milliseconds, of reading a view again.
func (b *bench) repeat(read func()) float64 {
	var took []float64
	for range 1 + b.rounds*slicesPerRound {
		began := monotonic()
		read()
		took = append(took, float64(monotonic()-began)/1e6)
	}
	return median(took[1:])
}

// viewState measures the whole state of a space with many grants, and its JSON.
func viewState(b *bench) []row {
	p, views := viewed(b, "view-state", func(root string) error { return os.MkdirAll(root, 0o700) })
	for i := range viewGrants {
		get(p.Locks.TryAcquire(b.ctx, lockkeeper.Request{Holder: fmt.Sprint("agent-", i), Metadata: map[string]string{"reason": fmt.Sprint("part ", i)},
			Locks: writes(fmt.Sprintf("app/controllers/page%d.rb", i), fmt.Sprintf("app/views/page%d.erb", i), fmt.Sprintf("test/page%d.rb", i))}))
	}
	size := 0
	took := b.repeat(func() { size = len(get(get(views.State(b.ctx)).JSON())) })
	return []row{row{What: fmt.Sprintf("The state with %d grants, as JSON", viewGrants), Ours: ms(took), Peer: "–",
		How: fmt.Sprintf("%.1f MB with all grants, items and units of a space in SQLite, read at one moment.", float64(size)/1e6)}.atMost(took, viewStateLimit, "%.0f ms")}
}

// viewBoard measures a board of many controllers whose documents were read before.
func viewBoard(b *bench) []row {
	p, views := viewed(b, "view-board", blog.Large{Controllers: viewControllers, Seed: 7}.Write)
	planAll(b.ctx, p)
	began := monotonic()
	get(views.Board(b.ctx, ""))
	cold := float64(monotonic()-began) / 1e6
	took := b.repeat(func() {
		board := get(views.Board(b.ctx, ""))
		if len(board.Units) != viewControllers || board.Statuses["applying"] != viewControllers {
			check(fmt.Errorf("the board has %d units: %v", len(board.Units), board.Statuses))
		}
	})
	return []row{row{What: fmt.Sprintf("The board of %d controllers", viewControllers), Ours: ms(took), Peer: ms(cold) + " (the first time)",
		How: "The status of every controller and its batches is read from documents and the queue. Unchanged documents are not read again."}.atMost(took, viewBoardLimit, "%.0f ms")}
}

func ms(took float64) string { return fmt.Sprintf("%.1f ms", took) }

// planAll gives every controller a copy of the documents of one controller with planned
// batches. The copies have an old modification time, so that the reader does not check them
// again.
func planAll(ctx context.Context, p *project.Project) {
	units, _, err := conduct.Discovered(p, "controllers")
	check(err)
	tracker, _, docs, err := conduct.OpenDocuments(p, "controllers")
	check(err)
	plan(ctx, tracker, units[0], "app")
	for _, unit := range units {
		if unit != units[0] {
			check(os.CopyFS(docs.Unit(unit).Dir(), os.DirFS(docs.Unit(units[0]).Dir())))
		}
		check(filepath.WalkDir(docs.Unit(unit).Dir(), func(path string, _ os.DirEntry, err error) error {
			hourAgo := time.Now().Add(-time.Hour)
			return errors.Join(err, os.Chtimes(path, hourAgo, hourAgo))
		}))
	}
}

// plan completes the phases of a controller up to the point where its batches, which write files in a
// directory, can start.
func plan(ctx context.Context, tracker *progress.Tracker, unit, dir string) {
	extract, ready := flow.Extract{}, flow.Synthesis{Dropped: []flow.Dropped{}}
	var batches []flow.Batch
	var choices []progress.Choice
	for i := range 3 {
		id, what := fmt.Sprint("i", i+1), fmt.Sprint("Improve part ", i+1)
		extract.Items = append(extract.Items, flow.Possible{ID: id, Description: what})
		ready.Items = append(ready.Items, flow.Ready{ID: id, Description: what, Impact: flow.High, Effort: flow.High, Rationale: "it is better"})
		choices = append(choices, progress.Choice{Item: id, Decision: flow.Todo})
		batches = append(batches, flow.Batch{ID: fmt.Sprint("b", i+1), Title: what, Items: []string{id}, WriteTargets: []string{fmt.Sprintf("%s/part%d.rb", dir, i+1)}})
	}
	analysis := flow.Analysis{Purpose: "pages", Behaviour: "it shows them", Screens: []flow.Served{}, Relations: []flow.Relation{}, Files: []string{}, Topics: []flow.Topic{}}
	check(tracker.PutAnalysis(ctx, unit, analysis, nil))
	check(tracker.PutExtract(ctx, unit, extract, nil))
	check(tracker.PutSynthesis(ctx, unit, ready, nil))
	check(tracker.Audit(ctx, unit))
	check(tracker.Decide(ctx, unit, "bench", choices...))
	check(tracker.PutPlan(ctx, unit, batches, nil))
	check(tracker.ApprovePlan(ctx, unit, "bench"))
}

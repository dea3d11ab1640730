package pipeline

import (
	"context"
	"fmt"
	"path"
	"time"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/sidecar"
	"lockkeeper/sched"
)

// TasksUnit is the unit of the tasks flow.
const TasksUnit = "+tasks"

// screenFolder is where the documents of a screen are, from the root; without a screen,
// those of a controller.
func (p *Pipeline) screenFolder(unit, screen string) string {
	g := p.groups[unit]
	at := path.Join(p.opt.Analysis, sidecar.FolderName(g.Module), sidecar.FolderName(controllerOf(g)))
	if screen != "" {
		at = path.Join(at, sidecar.FolderName(screen))
	}
	return at
}

func controllerOf(g flow.ScreenGroup) string {
	if len(g.Screens) == 0 {
		return g.Unit
	}
	return g.Screens[0].Controller
}

// advanceScreens queues the screens of a controller that are not analysed, and makes its
// merge once all are.
func (p *Pipeline) advanceScreens(ctx context.Context, unit string) error {
	var docs []flow.ScreenDoc
	open := 0
	for _, s := range p.groups[unit].Screens {
		state, err := p.opt.Book.Screen(ctx, s.Module, s.Controller, s.Name)
		if err != nil {
			return err
		}
		switch {
		case state.Excluded != nil:
		case state.Doc != nil:
			docs = append(docs, *state.Doc)
		default:
			open++
			err := p.place(ctx, due{unit: unit, kind: string(flow.Screen), batch: s.Name, phase: "analyze", pools: []string{sched.PoolAgent}})
			if err != nil {
				return err
			}
		}
	}
	if _, limited := p.parts[unit]; open > 0 || limited {
		return nil
	}
	if err := p.checkTargets([]flow.Batch{{Title: "merge", WriteTargets: flow.Aggregate(docs)}}); err != nil {
		p.tell(News{Kind: NewsFailed, Unit: unit, Phase: "batch_plan", Text: err.Error()})
		return nil // it stays where it is until a screen is analysed again, or excluded
	}
	if err := p.opt.Book.PutMerge(ctx, unit, docs); err != nil {
		return err
	}
	p.mark(unit)
	return nil
}

// analyzeScreen asks an agent about one screen.
func (p *Pipeline) analyzeScreen(ctx context.Context, t turn, d due) error {
	for _, s := range p.groups[d.unit].Screens {
		if s.Name != d.batch {
			continue
		}
		state, err := p.opt.Book.Screen(ctx, s.Module, s.Controller, s.Name)
		if err != nil || state.Doc != nil || state.Excluded != nil {
			return err
		}
		q := question{unit: d.unit, batch: d.batch, phase: "analyze", form: "screen", purpose: "screens/" + d.unit + "/" + d.batch + "/analyze"}
		return askReader(ctx, p, t, q, "screen", flow.Ask{Files: p.opt.Layout.ReadsOf(s), Screen: &s}, func(doc flow.ScreenDoc, calls []flow.Call) error {
			if err := p.checkTargets([]flow.Batch{{Title: s.Name, WriteTargets: flow.Aggregate([]flow.ScreenDoc{doc})}}); err != nil {
				return err
			}
			return p.opt.Book.PutScreen(ctx, s.Module, s.Controller, s.Name, doc, calls)
		})
	}
	return fmt.Errorf("the manifest has no screen %s any more", d.workflow())
}

// screenDocs spells the documents of a controller's screens, for its merge.
func (p *Pipeline) screenDocs(ctx context.Context, unit string) (string, error) {
	var docs []flow.ScreenDoc
	for _, s := range p.groups[unit].Screens {
		state, err := p.opt.Book.Screen(ctx, s.Module, s.Controller, s.Name)
		if err != nil {
			return "", err
		}
		if state.Doc != nil && state.Excluded == nil {
			docs = append(docs, *state.Doc)
		}
	}
	return text(docs), nil
}

// takePlan makes the batches of a plan file.
func (p *Pipeline) takePlan(ctx context.Context) error {
	return p.opt.Book.PutTasks(ctx, TasksUnit, p.opt.Plan.Plan(p.opt.Actor.Name, time.Now().UTC()))
}

package run

import (
	"context"
	"fmt"
	"path"
	"time"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/documents"
	"lockkeeper/internal/flow/progress"
)

// screenFolder returns the directory of a screen's documents, relative to the root.
func (p *Pipeline) screenFolder(unit, screen string) string {
	return path.Join(p.opt.Analysis, documents.UnitPath(unit), documents.FolderName(screen))
}

// queueScreens queues the screens of a controller that are not analyzed. Once all screens are
// analyzed, it stores the plan of their merge.
func (p *Pipeline) queueScreens(ctx context.Context, u *progress.Unit, phase flow.Phase) error {
	unit := u.Name
	var docs []flow.ScreenDoc
	open := 0
	for _, s := range p.groups[unit].Screens {
		state, err := p.opt.Progress.Screen(ctx, s.Module, s.Controller, s.Name)
		if err != nil {
			return err
		}
		switch {
		case state.Excluded != nil:
		case state.Doc != nil:
			docs = append(docs, *state.Doc)
		default:
			open++
			err := p.enqueue(ctx, workItem{Work: Work{Unit: unit, Kind: string(flow.Screen), Part: s.Name}, phase: phase.Name, pools: poolsOf(phase)})
			if err != nil {
				return err
			}
		}
	}
	if _, limited := p.parts[unit]; open > 0 || limited {
		return nil
	}
	if err := p.checkTargets([]flow.Batch{{Title: "merge", WriteTargets: flow.Aggregate(docs)}}); err != nil {
		p.tell(News{Kind: NewsFailed, Unit: unit, Phase: p.planPhase(), Text: err.Error()})
		return nil // the unit waits until a screen is analyzed again or excluded
	}
	if err := p.opt.Progress.PutMerge(ctx, unit, docs); err != nil {
		return err
	}
	p.mark(unit)
	return nil
}

func (p *Pipeline) askAboutScreen(ctx context.Context, t *timed, d workItem, phase flow.Phase) error {
	for _, s := range p.groups[d.Unit].Screens {
		if s.Name != d.Part {
			continue
		}
		state, err := p.opt.Progress.Screen(ctx, s.Module, s.Controller, s.Name)
		if err != nil || state.Doc != nil || state.Excluded != nil {
			return err
		}
		q := question{unit: d.Unit, batch: d.Part, phase: phase.Name, form: phase.Answer, purpose: p.opt.Flow.Name + "/" + d.Unit + "/" + d.Part + "/" + phase.Name}
		return askReader(ctx, p, t, q, phase.Prompt, flow.Ask{Files: p.opt.Layout.ReadsOf(s), Screen: &s}, func(doc flow.ScreenDoc, calls []flow.Call) error {
			if err := p.checkTargets([]flow.Batch{{Title: s.Name, WriteTargets: flow.Aggregate([]flow.ScreenDoc{doc})}}); err != nil {
				return err
			}
			return p.opt.Progress.PutScreen(ctx, s.Module, s.Controller, s.Name, doc, calls)
		})
	}
	return fmt.Errorf("the manifest no longer has the screen %s", d.Name())
}

func (p *Pipeline) planPhase() string {
	phase, _ := p.opt.Flow.PhaseOf(flow.BatchesFile)
	return phase.Name
}

// screenDocs encodes the documents of a controller's screens for the prompt of its merge.
func (p *Pipeline) screenDocs(ctx context.Context, unit string) (string, error) {
	var docs []flow.ScreenDoc
	for _, s := range p.groups[unit].Screens {
		state, err := p.opt.Progress.Screen(ctx, s.Module, s.Controller, s.Name)
		if err != nil {
			return "", err
		}
		if state.Doc != nil && state.Excluded == nil {
			docs = append(docs, *state.Doc)
		}
	}
	return text(docs), nil
}

func (p *Pipeline) takePlan(ctx context.Context) error {
	return p.opt.Progress.PutTasks(ctx, p.opt.Flow.OneUnit, p.opt.Tasks.Batches(p.opt.Actor.Name, time.Now().UTC()))
}

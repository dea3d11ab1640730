package progress

import (
	"context"
	"slices"

	"lockkeeper"
	"lockkeeper/internal/flow"
)

// Redo repeats a phase of a unit and all later phases: it moves their documents away. Answers to
// topics stay, because a new analysis may ask the same questions.
func (b *Tracker) Redo(ctx context.Context, unit, phase, by string) error {
	from := slices.IndexFunc(b.flow.Phases, func(p flow.Phase) bool { return p.Name == phase && p.Unit != flow.BatchUnit && p.Output != "" })
	if from < 0 {
		return &lockkeeper.InputError{Field: "phase", Value: phase, Reason: "not a phase of the units of " + b.flow.Name, Next: "use one of " + list(b.phaseNames())}
	}
	return b.personal(ctx, unit, by, func(u *Unit) error {
		for _, f := range u.docs.stored() {
			at := slices.IndexFunc(b.flow.Phases, func(p flow.Phase) bool { return p.Output == f.phase && p.Unit != flow.BatchUnit })
			if at < from {
				continue
			}
			if err := archive(ctx, u.folder, f.doc, f.bad, f.name); err != nil {
				return err
			}
		}
		return nil
	})
}

// RedoBatch repeats a phase of a batch and all later phases. A landing must be undone first.
func (b *Tracker) RedoBatch(ctx context.Context, unit, batch, phase, by string) error {
	p, ok := b.flow.Phase(phase)
	if !ok || p.Unit != flow.BatchUnit {
		return &lockkeeper.InputError{Field: "phase", Value: phase, Reason: "not a phase of the batches of " + b.flow.Name, Next: "use one of " + list(b.phaseNames())}
	}
	return b.personal(ctx, unit, by, func(u *Unit) error {
		is, err := u.needBatch("redo", batch)
		if err != nil {
			return err
		}
		if is.Landed != nil && is.Landed.Undone == nil {
			return refused("redo "+unit+"/"+batch, "undo the landing first", "it landed at %s", stamp(is.Landed.At))
		}
		for _, f := range is.stored() {
			if err := archive(ctx, is.docs.folder, f.doc, f.bad, f.name); err != nil || f.name == p.Output {
				return err
			}
		}
		return nil
	})
}

// A storedOutput is a document with the output file of its phase.
type storedOutput struct {
	storedDoc
	phase string
}

// stored lists the documents of a unit, the last first.
func (p unitDocs) stored() []storedOutput {
	list := []storedOutput{
		{storedDoc{batchesDraft, p.proposed.doc, p.proposed.bad}, flow.BatchesFile},
		{storedDoc{flow.BatchesFile, p.plan.doc, p.plan.bad}, flow.BatchesFile},
		{storedDoc{flow.DecisionsFile, p.decisions.doc, p.decisions.bad}, flow.DecisionsFile},
		{storedDoc{decisionsDraft, p.draft.doc, p.draft.bad}, flow.DecisionsFile},
		{storedDoc{flow.AuditFile, p.audit.doc, p.audit.bad}, flow.AuditFile},
		{storedDoc{flow.SynthesizeFile, p.synthesis.doc, p.synthesis.bad}, flow.SynthesizeFile},
		{storedDoc{flow.ExtractFile, p.extract.doc, p.extract.bad}, flow.ExtractFile},
		{storedDoc{flow.AnalysisFile, p.analysis.doc, p.analysis.bad}, flow.AnalysisFile},
	}
	for file, s := range p.others {
		list = append(list, storedOutput{storedDoc{file, s.doc, s.bad}, file})
	}
	return list
}

package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
)

// commonAfter is the number of batches with the same failure after which a run asks a person. The
// failure may have one cause, which no fix of a batch can repair.
const commonAfter = 3

// commonFailures counts the batches that fail in the same way, and knows the questions about them. A
// failure is counted by its parts, because a batch can fail in another way as well.
type commonFailures struct {
	one     sync.Mutex // held while a failure is compared and asked about, so that nothing is asked twice
	reading sync.Mutex // held while a unit is read and its questions are noted, so that no older state replaces a newer one

	mu      sync.Mutex
	batches map[string][]string                 // the batches that fail now, by part
	units   map[string][]progress.CommonFailure // the stored questions, by unit
	asking  bool                                // nothing new starts until a question is answered
}

// of returns the stored question about one of the parts that the function wanted accepts, the latest
// of each unit. The caller holds the mutex.
func (c *commonFailures) of(parts []string, wanted func(progress.CommonFailure) bool) (ref progress.Ref, ok bool) {
	for unit, list := range c.units {
		for _, f := range slices.Backward(list) {
			if wanted(f) && slices.ContainsFunc(f.Parts, func(part string) bool { return slices.Contains(parts, part) }) {
				return progress.Ref{Kind: progress.FailureKind, Unit: unit, Failure: f.ID}, true
			}
		}
	}
	return ref, false
}

// count adds a batch and returns the parts that enough batches share, with these batches. The caller
// holds the mutex.
func (c *commonFailures) count(batch string, parts []string) (shared, batches []string) {
	c.forget(batch)
	if c.batches == nil {
		c.batches = map[string][]string{}
	}
	for _, part := range parts {
		c.batches[part] = append(c.batches[part], batch)
		if len(c.batches[part]) >= commonAfter {
			shared = append(shared, part)
			batches = append(batches, c.batches[part]...)
		}
	}
	slices.Sort(batches)
	return shared, slices.Compact(batches)
}

// forget removes a batch, which no longer fails. The caller holds the mutex.
func (c *commonFailures) forget(batch string) {
	for part, list := range c.batches {
		c.batches[part] = slices.DeleteFunc(list, func(b string) bool { return b == batch })
	}
}

// passes records that a batch no longer fails.
func (p *Pipeline) passes(l *batchRun) {
	p.common.mu.Lock()
	defer p.common.mu.Unlock()
	p.common.forget(l.unit.Name + "/" + l.batch.ID)
}

// compare returns an error if the failure of a batch is not to be fixed: a person said so, or is
// asked because several batches fail in the same way.
func (l *batchRun) compare(ctx context.Context, c checks, run *flow.CheckRun) error {
	p, parts := l.p, l.failure.Parts()
	p.common.one.Lock()
	defer p.common.one.Unlock()
	p.common.mu.Lock()
	isAsked := func(f progress.CommonFailure) bool {
		return f.Answer == "" || f.Answer == progress.Stop && f.Run == p.opt.Run && p.halted.Load()
	}
	if ref, ok := p.common.of(parts, isAsked); ok {
		p.common.mu.Unlock()
		return waits(ref)
	}
	if ref, ok := p.common.of(parts, func(f progress.CommonFailure) bool { return f.Answer == progress.Without && f.Run == p.opt.Run }); ok {
		p.common.mu.Unlock()
		return lockkeeper.WithNext(fmt.Errorf("%s: %q failed in the same way as other batches, and %s leaves such batches out: %s; its output: %s", c.Name, run.Command, ref, run.Last, run.Output),
			"lockkeeper decide again "+ref.String()+", then lockkeeper run --retry")
	}
	shared, batches := p.common.count(l.unit.Name+"/"+l.batch.ID, parts)
	p.common.mu.Unlock()
	if len(shared) == 0 {
		return nil
	}
	said, err := p.endOf(run.Output, 4<<10)
	if err != nil {
		return err
	}
	id, err := p.opt.Progress.AskFailure(ctx, l.unit.Name, progress.CommonFailure{Run: p.opt.Run, Parts: shared, Phase: c.Name, Command: run.Command,
		Last: strings.Join(lastLines(said, lastShown), "\n"), Output: run.Output, Batches: batches}, p.opt.Actor.Name)
	if err != nil {
		return err
	}
	if err := p.readQuestions(ctx, l.unit.Name); err != nil {
		return err
	}
	p.askCommon()
	return waits(progress.Ref{Kind: progress.FailureKind, Unit: l.unit.Name, Failure: id})
}

// waits returns the batch to the queue.
func waits(ref progress.Ref) error {
	return &pausedError{errors.New("it waits for the answer to " + ref.String())}
}

// readQuestions reads a unit and notes its questions.
func (p *Pipeline) readQuestions(ctx context.Context, unit string) error {
	p.common.reading.Lock()
	defer p.common.reading.Unlock()
	u, err := p.opt.Progress.Unit(ctx, unit)
	if err == nil {
		p.noteQuestions(u)
	}
	return err
}

// noteQuestions records the stored questions of a unit. The caller has held the mutex reading since
// before it read the unit.
func (p *Pipeline) noteQuestions(u *progress.Unit) {
	p.common.mu.Lock()
	defer p.common.mu.Unlock()
	if p.common.units == nil {
		p.common.units = map[string][]progress.CommonFailure{}
	}
	p.common.units[u.Name] = u.CommonFailures()
}

// askCommon starts nothing new while a question is open. It applies the answer to the last one.
func (p *Pipeline) askCommon() {
	p.common.mu.Lock()
	was := p.common.asking
	var open []progress.CommonFailure
	var last progress.CommonFailure
	for _, list := range p.common.units {
		for _, f := range list {
			switch {
			case f.Answer == "":
				open = append(open, f)
			case f.Given != nil && (last.Given == nil || f.Given.After(*last.Given)):
				last = f
			}
		}
	}
	p.common.asking = len(open) > 0
	if was && len(open) == 0 {
		clear(p.common.batches)
	}
	p.common.mu.Unlock()
	switch {
	case len(open) > 0 && !was:
		if p.worker != nil {
			p.worker.Pause()
		}
		p.tell(News{Kind: NewsPaused, Text: fmt.Sprintf("%s fail in the same way (%s): nothing new starts until you answer: lockkeeper decide", strings.Join(open[0].Batches, ", "), open[0].Title())})
		p.mark()
	case len(open) == 0 && was && last.Answer == progress.Stop:
		p.halt("stopping: " + last.By + " stopped the run because batches fail in the same way; running work finishes")
	case len(open) == 0 && was:
		p.tell(News{Kind: NewsResumed, Text: "the failure of several batches is answered: " + last.Answer})
		p.startAgain()
	}
}

// isAsking reports whether nothing new starts until a person answers a question about a failure.
func (p *Pipeline) isAsking() bool {
	p.common.mu.Lock()
	defer p.common.mu.Unlock()
	return p.common.asking
}

// startAgain lets queued work start, unless something else pauses the run.
func (p *Pipeline) startAgain() {
	p.mu.Lock()
	limited := p.budget != nil || !p.until.IsZero()
	p.mu.Unlock()
	if limited || p.halted.Load() || p.isAsking() {
		return
	}
	if p.worker != nil {
		p.worker.Resume()
	}
	p.mark(p.units...)
}

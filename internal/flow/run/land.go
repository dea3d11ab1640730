package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
)

// land lands the batch. If a file that the batch depends on changed after its tests, land tests it
// again first.
func (l *batchRun) land(ctx context.Context) error {
	q := l.ask("land", "")
	for again := 0; ; again++ {
		if err := l.freeSlots(ctx); err != nil {
			return err
		}
		if again == l.p.opt.Limits.Rechecks-1 {
			// During the last test no other batch of this run may land, so that this batch cannot
			// be overtaken again.
			done, err := l.p.takeLander(ctx)
			if err != nil {
				return err
			}
			defer done()
			l.alone = true
		}
		l.t.leave() // a person may merge
		err := l.p.awaitRepo(ctx, q)
		if l.t.enter(); err != nil {
			return err
		}
		moved, err := l.moved(ctx)
		if err != nil {
			return err
		}
		if len(moved) == 0 && !l.checked {
			// The batch was tested in another workspace, before a crash, a review or a pause. Its
			// dependencies may have changed since.
			if slices.ContainsFunc(l.allChecks(), func(c checks) bool { return len(c.commands) > 0 }) {
				l.p.news(NewsAgain, q, "it was tested in an earlier workspace, and is tested again before it lands")
			}
			if asked, err := l.testAgain(ctx, nil); err != nil || asked {
				return err
			}
			if err := l.freeSlots(ctx); err != nil {
				return err
			}
		}
		if len(moved) == 0 {
			err := l.carryOut(ctx)
			var since *lockkeeper.MovedError
			if !errors.As(err, &since) {
				if err != nil {
					return err
				}
				return l.landed(ctx)
			}
			moved = []string{since.Path}
		}
		if again == l.p.opt.Limits.Rechecks {
			return lockkeeper.WithNext(fmt.Errorf("%s changed again after %d more test runs", moved[0], again), "lockkeeper job retry, when fewer changes land")
		}
		l.p.news(NewsAgain, q, fmt.Sprintf("%s it depends on changed (%s): testing it again", counted(len(moved), "file"), moved[0]))
		if asked, err := l.testAgain(ctx, moved); err != nil || asked {
			return err
		}
	}
}

// moved updates the workspace and returns the changed files that the batch depends on: its
// declared reads, and all files that git rewrote.
func (l *batchRun) moved(ctx context.Context) ([]string, error) {
	all, conflicts, err := l.w.CatchUp(ctx)
	if err != nil {
		return nil, err
	}
	own := append(slices.Clone(l.reads()), l.batch.WriteTargets...)
	more, refreshConflicts, err := l.w.Refresh(ctx, own)
	if err != nil {
		return nil, err
	}
	rewritten, err := l.rewritten(ctx)
	if err != nil {
		return nil, err
	}
	ours, collisions, err := l.w.Refresh(ctx, rewritten)
	if err != nil {
		return nil, err
	}
	l.p.crew.noteMoved(l.w, slices.Concat(all, more, ours)...)
	conflicts = slices.Concat(conflicts, refreshConflicts, collisions)
	if len(conflicts) > 0 {
		return nil, lockkeeper.WithNext(fmt.Errorf("%s was changed without its lock since the batch started; the batch's work is kept", conflicts[0].Change.Path), "lockkeeper rescue list")
	}
	ours = slices.DeleteFunc(ours, func(path string) bool { return slices.Contains(l.batch.WriteTargets, path) })
	for _, path := range append(all, more...) {
		if slices.Contains(l.batch.WriteTargets, path) {
			continue // the batch holds the lock, and an edit without a lock is a conflict
		}
		at := lockkeeper.Target{Path: path, Kind: lockkeeper.File}
		if slices.ContainsFunc(l.readTargets(), func(t lockkeeper.Target) bool { return t.Overlaps(at) }) && !slices.Contains(ours, path) {
			ours = append(ours, path)
		}
	}
	return ours, nil
}

// reads lists the files that the batch depends on: its declared reads, or else all known files of
// its unit.
func (l *batchRun) reads() []string {
	if len(l.batch.Reads) > 0 || l.p.opt.Flow.DeclaresReads {
		return l.batch.Reads
	}
	files := l.p.filesOf(l.unit.Name)
	if l.unit.Analysis != nil {
		files = append(slices.Clone(files), l.unit.Analysis.Files...)
	}
	return files
}

func (l *batchRun) readTargets() (list []lockkeeper.Target) {
	for _, path := range l.reads() {
		if lock, err := l.p.opt.Root.Resolve(l.p.opt.Root.Dir(), path, lockkeeper.Read); err == nil { // an unresolvable path cannot land
			list = append(list, lock.Target)
		}
	}
	return list
}

// testAgain runs the checks again. If one fails, the phases after the first run again. If an agent
// then fixed the batch, testAgain asks a person to review the fix.
func (l *batchRun) testAgain(ctx context.Context, moved []string) (asked bool, err error) {
	if len(moved) > 0 {
		l.rechecks = append(l.rechecks, flow.Recheck{Moved: moved, At: time.Now().UTC()})
	}
	if l.checked, err = l.stillPasses(ctx); err != nil {
		return false, err
	}
	if !l.checked {
		for _, phase := range l.p.opt.Flow.BatchPhases()[1:] {
			if err := batchSteps()[phase.Step](l, ctx, phase); err != nil {
				return false, err
			}
		}
		l.checked = true
		if err := l.refresh(ctx); err != nil {
			return false, err
		}
	}
	if l.batch.Next != progress.LandPhase || l.batch.Review == nil && l.needsReview() {
		return true, l.review(ctx)
	}
	return false, nil
}

// stillPasses reports whether all checks pass without a fix. It changes no document.
func (l *batchRun) stillPasses(ctx context.Context) (bool, error) {
	for _, c := range l.allChecks() {
		if len(c.commands) == 0 {
			continue
		}
		at := &checkState{}
		failed, err := l.runAll(ctx, c, at, func() error { return nil })
		if stored := l.batch.Check(c.Name); err != nil || failed != nil || stored == nil || stored.AsBefore != at.Done.AsBefore {
			return false, err
		}
	}
	return true, nil
}

func (l *batchRun) changes(ctx context.Context) ([]gate.Change, error) {
	found, err := l.w.Changes(ctx)
	if err != nil {
		return nil, err
	}
	var list []gate.Change
	for _, c := range found {
		change := gate.Change{Path: c.Path, Delete: c.Now == nil}
		if len(l.lands) == 0 {
			base := c.Base
			change.Base = &base
		}
		if c.Now != nil {
			mode := c.Now.Mode.Perm()
			change.Mode = &mode
			change.Body = func() (io.ReadCloser, error) { return l.w.Open(c.Path) }
		}
		list = append(list, change)
	}
	return list, nil
}

// holdsAll refuses to land a workspace that differs from the stored files of the batch. A file
// may have landed already, before a crash.
func (l *batchRun) holdsAll(ctx context.Context) error {
	changes, err := l.w.Changes(ctx)
	if err != nil {
		return err
	}
	for _, c := range changes {
		if stored, err := l.isStoredAs(c); err != nil || !stored {
			return errors.Join(err, fmt.Errorf("%s differs from the tested content", c.Path))
		}
	}
	reverted, err := l.reverted(changes)
	if len(reverted) > 0 {
		err = &lockkeeper.MovedError{Path: reverted[0].Path}
	}
	return err
}

// carryOut lands the changes in the workspace as one landing.
func (l *batchRun) carryOut(ctx context.Context) error {
	if err := l.holdsAll(ctx); err != nil {
		return err
	}
	list, err := l.changes(ctx)
	if err != nil || len(list) == 0 {
		return err
	}
	if err := l.checkCopy(ctx); err != nil {
		return err
	}
	if err := l.p.publish(ctx); err != nil {
		return err
	}
	if !l.alone {
		done, err := l.p.takeLander(ctx)
		if err != nil {
			return err
		}
		defer done()
	}
	l.p.landing.Lock()
	defer l.p.landing.Unlock()
	landing, err := l.p.opt.Gate.CommitSeen(ctx, l.t.Grant(), list, gate.Seen{Seq: l.w.Seq(), Reads: l.readTargets()})
	if err != nil || landing == nil {
		return err
	}
	l.lands = append(l.lands, landing.Seq)
	// Record the landing as committed now, so that new workspaces need not wait for the grant to
	// end.
	return l.p.opt.Gate.RecoverLandings(context.WithoutCancel(ctx), landing.GrantID)
}

// freeSlots releases the slots of the last phase. A batch that waits to land must hold none:
// the batch that holds the lander may need them.
func (l *batchRun) freeSlots(ctx context.Context) error {
	return l.t.Phase(ctx, l.p.opt.Flow.LastOfBatch())
}

// takeLander waits until no other batch of this run lands, and keeps others from landing
// until done is called.
func (p *Pipeline) takeLander(ctx context.Context) (done func(), err error) {
	select {
	case <-p.lander:
		return func() { p.lander <- struct{}{} }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// landNow lands the changes before their tests, for run.land: after_apply.
func (l *batchRun) landNow(ctx context.Context) error {
	if err := l.p.awaitRepo(ctx, l.ask("land", "")); err != nil {
		return err
	}
	if err := l.freeSlots(ctx); err != nil {
		return err
	}
	before := len(l.lands)
	if err := l.carryOut(ctx); err != nil {
		return err
	}
	if landed := l.lands[before:]; len(landed) > 0 {
		l.p.news(NewsLanded, l.ask("land", ""), fmt.Sprintf("%s, %s, before its tests", counted(len(l.files), "file"), landings(landed)))
	}
	return l.noteLandings(ctx)
}

// undoLandings undoes landings that were made before their tests.
func (l *batchRun) undoLandings(ctx context.Context, why string) (err error) {
	if len(l.lands) == 0 {
		return nil
	}
	for _, seq := range slices.Backward(l.lands) {
		if _, undo := l.p.opt.Gate.Undo(ctx, l.t.Grant(), seq); undo != nil {
			err = errors.Join(err, lockkeeper.WithNext(fmt.Errorf("cannot undo landing %d: %w", seq, undo), fmt.Sprintf("lockkeeper undo %d", seq)))
		}
	}
	if err == nil {
		l.p.news(NewsUndone, l.ask("land", ""), fmt.Sprintf("%s, because %s", landings(l.lands), why))
	}
	l.lands = nil
	if err != nil {
		return err
	}
	return l.noteLandings(ctx)
}

// landed records how the batch reached the tree, and commits it.
func (l *batchRun) landed(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx) // the changes are in the tree
	done := flow.Landed{Landings: l.lands, Files: l.files, Again: l.rechecks, At: time.Now().UTC()}
	if len(l.lands) == 0 && len(l.files) > 0 { // a run crashed right after it landed
		var err error
		if done.Landings, err = l.p.landingsOf(ctx, l.files); err != nil {
			return err
		}
	}
	if g := l.t.Grant(); g != nil {
		done.Grant, done.Fence = g.ID, g.Fence
	}
	commit, err := l.p.commit(ctx, l, done)
	if err != nil {
		l.p.news(NewsWarning, l.ask("land", ""), "it landed, but the commit failed: "+err.Error())
	}
	done.Commit = commit
	if err := l.p.opt.Progress.PutLanded(ctx, l.unit.Name, l.batch.ID, done); err != nil {
		return err
	}
	l.lands = nil // end must not undo these landings
	if l.p.opt.Land == "after_apply" {
		if err := l.noteLandings(ctx); err != nil {
			return err
		}
	}
	if len(l.files) == 0 && len(done.Landings) == 0 {
		l.p.news(NewsNoChange, l.ask("land", ""), "")
		return nil
	}
	what := counted(len(l.files), "file")
	if len(done.Landings) > 0 {
		what += ", " + landings(done.Landings)
	}
	untested, before := l.untested(), l.batch.AsBefore()
	switch {
	case before != "":
		what += ", its tests fail as before the run: " + before
	case l.p.opt.Land == "after_apply" && untested:
		what += ", kept: verified, not tested"
	case l.p.opt.Land == "after_apply":
		what += ", kept: tested and verified"
	case untested:
		what += ", not tested"
	}
	l.p.news(NewsLanded, l.ask("land", ""), what)
	return nil
}

package gate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/store"
)

// A Report lists what a recovery found and did.
type Report struct {
	Finished  []uint64 `json:"finished"`  // landings that were completed
	Undone    []uint64 `json:"undone"`    // landings that were rolled back
	Cleared   int      `json:"cleared"`   // stages of landings that were never decided
	Working   int      `json:"working"`   // stages on which a running process works
	Elsewhere []string `json:"elsewhere"` // landings that only another host or root can complete
	Waiting   []uint64 `json:"waiting"`   // landings that wait for a directory that was moved away
	Forgot    int      `json:"forgot"`    // number of days whose originals and rescue entries had expired and were deleted
}

// Recover completes or rolls back the decided landings of crashed processes, and removes
// their other stages. It skips what a running process works on, so it may run at any time.
func (g *Gate) Recover(ctx context.Context) (r Report, err error) {
	r = Report{Finished: []uint64{}, Undone: []uint64{}, Elsewhere: []string{}, Waiting: []uint64{}}
	open, err := g.landings(ctx, store.LandingQuery{Open: true})
	if err != nil {
		return r, err
	}
	var errs []error
	for _, l := range open {
		errs = append(errs, g.recoverLanding(ctx, l, &r))
	}
	errs = append(errs, g.clearStages(ctx, &r))
	r.Forgot, err = g.forget(time.Now())
	return r, errors.Join(append(errs, err)...)
}

func (g *Gate) recoverLanding(ctx context.Context, l *lockkeeper.Landing, r *Report) error {
	if !g.isHere(l) {
		r.Elsewhere = append(r.Elsewhere, fmt.Sprintf("landing %d on %s", l.Seq, siteOf(l)))
		return nil
	}
	if g.isCommitting(l.GrantID) || g.isDone(l) {
		return nil
	}
	if busy, err := g.isBusy(l); err != nil || busy {
		return err
	}
	state, err := g.recoverOne(ctx, l, "")
	switch {
	case errors.As(err, new(*awayError)):
		r.Waiting = append(r.Waiting, l.Seq)
		return err
	case err != nil:
		return err
	case state == lockkeeper.Committed:
		r.Finished = append(r.Finished, l.Seq)
	case state == lockkeeper.Undone:
		r.Undone = append(r.Undone, l.Seq)
	}
	return nil
}

// isBusy reports whether a running process works on a landing.
func (g *Gate) isBusy(l *lockkeeper.Landing) (bool, error) {
	_, busy, err := g.hasStage(l)
	return busy, err
}

// hasStage reports whether a landing has a stage, and whether a running process works on
// it. A landing that is complete and not yet marked has none.
func (g *Gate) hasStage(l *lockkeeper.Landing) (left, busy bool, err error) {
	from, err := g.sources(l)
	if err != nil {
		return false, false, err
	}
	for _, f := range from {
		s, busy, err := g.openAbandoned(f.in, f.name)
		if err != nil || busy {
			return busy, busy, err
		}
		if s != nil {
			left = true
			s.close()
		}
	}
	return left, false, nil
}

// clearStages removes the stages of landings that have ended, and of those that were
// never decided and whose process is gone.
func (g *Gate) clearStages(ctx context.Context, r *Report) error {
	var errs []error
	for _, in := range []*os.File{g.stages, g.recovs} {
		names, err := g.disk.List(in)
		errs = append(errs, err)
		for _, name := range names {
			st, err := g.disk.Lstat(in, name)
			if err == nil && st.Mode.IsDir() { // anything else is not a stage
				err = g.clearStage(ctx, in, name, r)
			}
			errs = append(errs, unlessMissing(err))
		}
	}
	return errors.Join(errs...)
}

func (g *Gate) clearStage(ctx context.Context, in *os.File, name string, r *Report) error {
	s, busy, err := g.openAbandoned(in, name)
	if busy && !isSpare(name) {
		r.Working++
	}
	if err != nil || s == nil {
		return err
	}
	defer s.close()
	switch {
	case strings.HasPrefix(name, asidePrefix):
		return s.discard()
	case isSpare(name):
		return s.removeAbandoned()
	}
	l, err := g.landingOf(ctx, commitOf(name))
	switch {
	case err != nil || l != nil && l.State == lockkeeper.Decided: // the landing was decided since the stages were listed
		return err
	case l != nil && l.State == lockkeeper.Committed && in == g.stages:
		return errors.Join(s.keepOriginals(l), s.drop()) // a power failure lost the move of the originals
	}
	path, err := s.draftOf()
	if err == nil && path != "" {
		_, err = s.reclaimDraft(path)
	}
	if err == nil {
		err = s.removeAbandoned()
	}
	if err != nil || l != nil {
		return err
	}
	r.Cleared++
	_, err = g.locks.Note(ctx, "", lockkeeper.Event{Kind: lockkeeper.EventCleared, Actor: g.opt.Actor, Reason: "its process ended before the landing was decided",
		Data: map[string]string{"stage": name}})
	return err
}

// landingOf returns the landing of a commit, or nil. It reads in an update transaction,
// which waits for a transaction that a crashed writer may have left open.
func (g *Gate) landingOf(ctx context.Context, commit string) (l *lockkeeper.Landing, err error) {
	err = g.store.Update(ctx, func(tx store.Tx) error {
		found, err := tx.Landings(store.LandingQuery{Commit: commit})
		if len(found) > 0 {
			l = found[0]
		}
		return err
	})
	return l, err
}

// commitOf returns the commit in the name of a stage of a writer or a recovery.
func commitOf(stage string) string {
	parts := strings.Split(strings.TrimPrefix(stage, asidePrefix), ".")
	if len(parts) == 3 {
		return parts[2]
	}
	return parts[0]
}

// RecoverLandings completes or rolls back every landing that is open under a grant, even
// if another process works on it. The lock manager calls it before it gives the paths to
// another holder (lock.Options.RecoverLandings).
func (g *Gate) RecoverLandings(ctx context.Context, grantID string) error {
	if err := g.waitForCommits(ctx, grantID); err != nil {
		return err
	}
	if done := g.takeDone(grantID); len(done) > 0 {
		if err := g.markCommitted(ctx, grantID, done...); err != nil {
			g.putDone(grantID, done...)
			return err
		}
	}
	open, err := g.landings(ctx, store.LandingQuery{GrantID: grantID, Open: true})
	if err != nil {
		return err
	}
	for _, l := range open {
		if _, err := g.recoverOne(ctx, l, ""); err != nil {
			return err
		}
	}
	return g.markCommitted(ctx, grantID) // tells the lock manager that no landing is open
}

// Unfinished returns the decided landings of this tree that are neither complete nor
// rolled back, and on which no running process works.
func (g *Gate) Unfinished(ctx context.Context) (list []*lockkeeper.Landing, err error) {
	open, err := g.landings(ctx, store.LandingQuery{Open: true})
	if err != nil {
		return nil, err
	}
	for _, l := range open {
		if !g.isHere(l) || g.isCommitting(l.GrantID) || g.isDone(l) {
			continue
		}
		left, busy, err := g.hasStage(l)
		if err != nil {
			return nil, err
		}
		if left && !busy {
			list = append(list, l)
		}
	}
	return list, nil
}

// Abandon ends a landing whose files are lost, so that its paths can be locked again. The
// landing counts as undone. If its files are on another disk, their state stays unknown.
// If directories of this tree are away, the landing is rolled back without them. The
// originals of their files are kept on the rescue shelf. Only a person may declare a disk
// or a directory lost.
func (g *Gate) Abandon(ctx context.Context, seq uint64, by lockkeeper.Actor, reason string) (*lockkeeper.Landing, error) {
	l, err := g.Landing(ctx, seq)
	if err != nil {
		return nil, err
	}
	refuse := func(reason, next string) error {
		return &lockkeeper.RefusedError{Act: "abandoning landing " + itoa(seq), Reason: reason, Next: next}
	}
	switch {
	case by.Kind != lockkeeper.ActorPerson && by.Kind != lockkeeper.ActorAdmin:
		return nil, refuse(fmt.Sprintf("only a person or an administrator may do this, not an actor of kind %q", by.Kind), "ask a person")
	case reason == "":
		return nil, &lockkeeper.InputError{Field: "reason", Reason: "required", Next: "say why, for the audit log"}
	case l.State != lockkeeper.Decided:
		return nil, refuse("it is already "+l.State.String(), "nothing to do")
	case g.isHere(l):
		return l, g.abandonHere(ctx, l, "abandoned by "+by.Name+": "+reason)
	}
	mine := store.TakenLanding{Seq: seq, Taker: newID()}
	if _, err := g.takeLanding(ctx, mine); err != nil {
		return nil, err
	}
	ended, err := g.endLanding(ctx, mine, lockkeeper.Undone, "abandoned by "+by.Name+", with "+siteOf(l)+": "+reason)
	if err == nil && !ended {
		err = refuse("another process is recovering it", "run `lockkeeper gate recover` on the machine with the files")
	}
	return l, err
}

// abandonHere abandons a landing of this tree. It refuses unless the landing waits for a
// directory.
func (g *Gate) abandonHere(ctx context.Context, l *lockkeeper.Landing, abandoned string) error {
	busy, err := g.isBusy(l)
	if err == nil && (busy || g.isCommitting(l.GrantID)) {
		err = &lockkeeper.RefusedError{Act: "abandoning landing " + itoa(l.Seq), Reason: "its process is still running", Next: "try again when it has ended"}
	}
	if err != nil {
		return err
	}
	state, err := g.recoverOne(ctx, l, "")
	if errors.As(err, new(*awayError)) {
		_, err = g.recoverOne(ctx, l, abandoned)
		return err
	}
	if err == nil {
		err = &lockkeeper.RefusedError{Act: "abandoning landing " + itoa(l.Seq), Reason: "recovery has just ended it: " + state.String(), Next: "nothing to do"}
	}
	return err
}

// MayNeedRecovery reports whether Recover may have work in a root: a landing is in progress, a
// crashed process left one, or something is older than the duration keep. It reads only file names.
func MayNeedRecovery(root string, keep time.Duration) (bool, error) {
	list := func(name string) ([]fs.DirEntry, error) {
		entries, err := os.ReadDir(filepath.Join(root, stateDir, name))
		return entries, unlessMissing(err)
	}
	for _, name := range []string{stagesDir, recoversDir} {
		entries, err := list(name)
		if err != nil || slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return !isSpare(e.Name()) }) {
			return true, err
		}
	}
	before := time.Now().UTC().Add(-keep)
	for _, kept := range []struct {
		name, form string
		since      time.Time // anything older has expired
	}{{keptDir, time.DateOnly, before.AddDate(0, 0, -1)}, {shelfDir, "20060102T150405", before}} {
		entries, err := list(kept.name)
		if err != nil {
			return true, err
		}
		for _, e := range entries {
			if at := e.Name()[:min(len(e.Name()), len(kept.form))]; at >= "0" { // skips temporary names; the first other one is the oldest
				if at < kept.since.Format(kept.form) {
					return true, nil
				}
				break
			}
		}
	}
	return false, nil
}

package gate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"lockkeeper"
)

// Report says what a recovery found and did.
type Report struct {
	Finished []uint64 `json:"finished"`  // decided landings that are in the tree now
	Undone   []uint64 `json:"undone"`    // decided landings that were taken back
	Cleared  int      `json:"cleared"`   // stages of writes that were never decided
	Working  int      `json:"working"`   // stages on which somebody alive works
	Away     []string `json:"elsewhere"` // decided landings that only another host or root can finish
	Waiting  []uint64 `json:"waiting"`   // decided landings that wait for a directory that is away
	Forgot   int      `json:"forgot"`    // days of originals and rescued pieces dropped for their age
}

// Recover brings to an end what crashes left: decided landings are finished or
// taken back, stages of others cleared away. What somebody alive works on is left
// alone. It may run at any time, beside anything.
func (g *Gate) Recover(ctx context.Context) (r Report, err error) {
	r = Report{Finished: []uint64{}, Undone: []uint64{}, Away: []string{}, Waiting: []uint64{}}
	open, err := g.landings(ctx, lockkeeper.LandingQuery{Open: true})
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
		r.Away = append(r.Away, fmt.Sprintf("landing %d on %s", l.Seq, siteOf(l)))
		return nil
	}
	if g.isFlying(l.GrantID) || g.isDone(l) {
		return nil
	}
	if busy, err := g.isBusy(l); err != nil || busy {
		return err
	}
	state, err := g.resume(ctx, l, "")
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

// isBusy reports whether the writer of an open landing lives.
func (g *Gate) isBusy(l *lockkeeper.Landing) (bool, error) {
	_, busy, err := g.isLeft(l)
	return busy, err
}

// isLeft reports whether a landing has a stage, and whether a living process works on
// it. A landing that is done and not marked yet has none.
func (g *Gate) isLeft(l *lockkeeper.Landing) (left, busy bool, err error) {
	from, err := g.sources(l)
	if err != nil {
		return false, false, err
	}
	for _, f := range from {
		s, busy, err := g.claim(f.in, f.name)
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

// clearStages removes the stages of landings that have ended, or were never
// decided and never will be because nobody alive works on them.
func (g *Gate) clearStages(ctx context.Context, r *Report) error {
	var errs []error
	for _, in := range []*os.File{g.stages, g.recovs} {
		names, err := g.disk.List(in)
		errs = append(errs, err)
		for _, name := range names {
			st, err := g.disk.Lstat(in, name)
			if err == nil && st.Mode.IsDir() { // anything else is not the gate's
				err = g.clearStage(ctx, in, name, r)
			}
			if !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

func (g *Gate) clearStage(ctx context.Context, in *os.File, name string, r *Report) error {
	s, busy, err := g.claim(in, name)
	if busy && !isSpare(name) {
		r.Working++
	}
	if err != nil || s == nil {
		return err
	}
	defer s.close()
	switch {
	case isAside(name):
		return s.discard()
	case isSpare(name):
		return s.clearAway()
	}
	l, err := g.landingOf(ctx, commitOf(name))
	switch {
	case err != nil || l != nil && l.State == lockkeeper.Decided: // since the listing
		return err
	case l != nil && l.State == lockkeeper.Committed && in == g.stages:
		return errors.Join(s.retire(l), s.drop()) // that it was put away got lost with the power
	}
	path, err := s.draftOf()
	if err == nil && path != "" {
		_, err = s.reclaimDraft(path)
	}
	if err == nil {
		err = s.clearAway()
	}
	if err != nil || l != nil {
		return err
	}
	r.Cleared++
	_, err = g.locks.Note(ctx, "", lockkeeper.Event{Kind: lockkeeper.EventCleared, Actor: g.opt.Actor, Reason: "its writer is gone and never decided it",
		Data: map[string]string{"stage": name}})
	return err
}

// landingOf finds the landing of a commit. It looks in a transaction of its own: one
// of a writer that is gone may be on its way still.
func (g *Gate) landingOf(ctx context.Context, commit string) (l *lockkeeper.Landing, err error) {
	err = g.store.Update(ctx, func(tx lockkeeper.Tx) error {
		found, err := tx.Landings(lockkeeper.LandingQuery{Commit: commit})
		if len(found) > 0 {
			l = found[0]
		}
		return err
	})
	return l, err
}

// commitOf is the commit in the name of a stage, the writer's or a recovery's.
func commitOf(stage string) string {
	parts := strings.Split(strings.TrimPrefix(stage, asidePrefix), ".")
	if len(parts) == 3 {
		return parts[2]
	}
	return parts[0]
}

// Settle brings everything that was decided under a grant to its end, whoever
// works on it: the manager asks for it before it hands the paths on.
func (g *Gate) Settle(ctx context.Context, grantID string) error {
	if err := g.landAll(ctx, grantID); err != nil {
		return err
	}
	if done := g.takeDone(grantID); len(done) > 0 {
		if err := g.locks.Committed(ctx, grantID, done...); err != nil {
			g.putDone(grantID, done...)
			return err
		}
	}
	open, err := g.landings(ctx, lockkeeper.LandingQuery{GrantID: grantID, Open: true})
	if err != nil {
		return err
	}
	for _, l := range open {
		if _, err := g.resume(ctx, l, ""); err != nil {
			return err
		}
	}
	return g.locks.Committed(ctx, grantID) // none more, and the grant is held as before
}

// Unfinished returns the decided landings of this tree that are neither done nor
// rolled back, and on which no living process works.
func (g *Gate) Unfinished(ctx context.Context) (list []*lockkeeper.Landing, err error) {
	open, err := g.landings(ctx, lockkeeper.LandingQuery{Open: true})
	if err != nil {
		return nil, err
	}
	for _, l := range open {
		if !g.isHere(l) || g.isFlying(l.GrantID) || g.isDone(l) {
			continue
		}
		left, busy, err := g.isLeft(l)
		if err != nil {
			return nil, err
		}
		if left && !busy {
			list = append(list, l)
		}
	}
	return list, nil
}

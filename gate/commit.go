package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"lockkeeper"
	"lockkeeper/internal/project/protect"
	"lockkeeper/rescue"
	"lockkeeper/store"
)

// item is one change on its way.
type item struct {
	Change
	target string
	mode   fs.FileMode
	alter  lockkeeper.Alteration
	open   Body // the content to stage

	dir     *dirID // the directory it is in; nil: it is missing
	refused bool   // by the first check
	first   bool   // the grant has landed nothing here

	entry rescue.Entry // on the shelf; without an ID: it is not there
}

// Write is Commit for one file.
func (g *Gate) Write(ctx context.Context, grant *lockkeeper.Grant, path string, content []byte) (*lockkeeper.Landing, error) {
	return g.Commit(ctx, grant, []Change{Put(path, content)})
}

// Commit lands changes as one unit: all of them or none. It returns nil when the
// tree is already as wanted. A refusal is a *lockkeeper.LockViolationError, or
// several joined, and leaves the tree, and the grant, as they were. Ending ctx stops
// it up to the moment in which the landing is decided.
//
// With an error, new content is on the rescue shelf, or in a landing that recovery
// will bring to its end. If the shelf fails too, the error is a *NotKeptError.
func (g *Gate) Commit(ctx context.Context, grant *lockkeeper.Grant, changes []Change) (*lockkeeper.Landing, error) {
	c := g.newCommit(grant)
	c.keepWith = c.failed
	l, err := c.run(ctx, changes)
	if err != nil {
		return nil, c.failed(ctx, err)
	}
	return l, nil
}

// Apply lands as one unit those changes that may land. The others are refused, each
// with its error. It keeps what does not land as Commit does.
func (g *Gate) Apply(ctx context.Context, grant *lockkeeper.Grant, changes []Change) (l *lockkeeper.Landing, refused []error, err error) {
	for len(changes) > 0 {
		c := g.newCommit(grant)
		l, err := c.run(ctx, changes)
		if err == nil {
			return l, refused, nil
		}
		why := c.reasons(err)
		if len(why) == 0 {
			return nil, refused, c.failed(ctx, err)
		}
		var left []Change
		for n, it := range c.items {
			reason := why[it.target]
			if reason == nil {
				left = append(left, changes[n])
				continue
			}
			refused = append(refused, errors.Join(reason, c.keepRefused(ctx, it, reason)))
		}
		changes = left
	}
	return nil, refused, nil
}

func (g *Gate) newCommit(grant *lockkeeper.Grant) *commit {
	if grant == nil {
		grant = &lockkeeper.Grant{}
	}
	return &commit{g: g, grant: grant, put: g.shelf.Put, look: g.opt.Protected.Look(), landing: &lockkeeper.Landing{Site: g.site, Holder: g.opt.Actor.Name}}
}

// commit is one Commit on its way.
type commit struct {
	g       *Gate
	grant   *lockkeeper.Grant
	fence   uint64    // of the grant when it was looked at
	since   time.Time // when it was granted
	look    *protect.Look
	put     put
	items   []*item
	landing *lockkeeper.Landing
	seen    Seen

	keepWith func(context.Context, error) error // keeps new content before a landing that is rolled back ends; nil: the caller does
	kept     bool                               // all new content is safe
	pending  bool                               // recovery brings the landing to its end
}

func (c *commit) run(ctx context.Context, changes []Change) (*lockkeeper.Landing, error) {
	if err := c.check(ctx, changes); err != nil {
		return nil, err
	}
	if err := c.plan(ctx); err != nil {
		return nil, err
	}
	s, err := c.g.makeStage(c.g.stages, func() string {
		c.landing.Commit = newID()
		return stageName(c.grant.ID, c.fence, c.landing.Commit)
	})
	if err != nil {
		return nil, failed("stage", err)
	}
	defer s.close()
	if err := c.prepare(s); err != nil {
		return nil, errors.Join(err, s.discard())
	}
	if c.changesNothing() {
		return nil, s.discard()
	}
	end := c.g.beginCommit(c.grant.ID)
	defer end()
	if err := c.decide(ctx); err != nil {
		if lockkeeper.CodeOf(err) == lockkeeper.CodeStore {
			// It may have been decided all the same. The stage stays for recovery, which
			// finds out. If it was not decided, recovery drops the stage.
			return nil, err
		}
		return nil, errors.Join(err, s.discard())
	}
	p := c.g.newApplier(c.landing, s)
	defer p.close()
	p.keepWith = c.keepWith
	if err := p.apply(context.WithoutCancel(ctx)); err != nil {
		c.pending = p.pending
		return nil, err
	}
	c.g.putDone(c.grant.ID, p.ending())
	return c.landing, nil
}

// failed explains an error of the disk before anything was decided.
func failed(op string, err error) error {
	return fmt.Errorf("%s: %w; nothing in the tree was changed", op, err)
}

// check makes the three checks, and learns what each path is expected to hold. What
// is wrong with any path is told at once.
func (c *commit) check(ctx context.Context, changes []Change) error {
	refused, err := c.resolve(changes)
	if err != nil {
		return err
	}
	err = c.g.look(ctx, c.grant, func(r store.Reader, rec *store.Record) error {
		refused = append(refused, c.coverage(rec)...)
		if rec == nil {
			return nil
		}
		c.fence = rec.Fence
		c.since = rec.AcquiredAt.Add(time.Since(r.Now().Wall)) // on the clock of this disk
		return c.bases(r)
	})
	return c.refusal(ctx, err, refused...)
}

// resolve makes an item of each change, also of those after one that fails, and the
// first check on it.
func (c *commit) resolve(changes []Change) (refused []error, err error) {
	seen := map[string]bool{}
	var targets []string
	for _, change := range changes {
		it := &item{Change: change}
		var wrong error
		if it.target, wrong = c.g.resolve(c.look, change.Path); wrong != nil {
			it.refused = true
			it.target = cmp.Or(it.target, change.Path)
			if isRefusal(wrong) {
				refused = append(refused, wrong)
			} else {
				err = cmp.Or(err, wrong)
			}
		}
		if seen[it.target] {
			err = cmp.Or(err, error(&lockkeeper.InputError{Field: "changes", Value: change.Path, Reason: "the path is changed twice in one commit", Next: "name each file once"}))
		}
		seen[it.target] = true
		it.alter.Path = it.target
		c.items = append(c.items, it)
		c.landing.Changes = append(c.landing.Changes, it.alter)
		if !it.Delete {
			targets = append(targets, it.target)
		}
	}
	made := c.look.CompletesGit(targets)
	for _, it := range c.items {
		if !it.refused && slices.Contains(made, it.target) {
			it.refused = true
			refused = append(refused, protected(it.target, protect.Git))
		}
	}
	if len(changes) == 0 || len(changes) > lockkeeper.MaxTargets {
		err = &lockkeeper.InputError{Field: "changes", Value: fmt.Sprint(len(changes)), Reason: fmt.Sprintf("between 1 and %d can land as one unit", lockkeeper.MaxTargets), Next: "split them, or name one"}
	}
	return refused, err
}

// isRefusal reports whether an error is about one path, and not about the disk or
// the store.
func isRefusal(err error) bool {
	code := lockkeeper.CodeOf(err)
	return code == lockkeeper.CodeViolation || code == lockkeeper.CodeInput
}

// coverage is the third check for all items.
func (c *commit) coverage(rec *store.Record) (refused []error) {
	for _, it := range c.items {
		if it.refused {
			continue
		}
		if err := c.g.covered(rec, it.target); err != nil {
			refused = append(refused, err)
		}
	}
	return refused
}

// bases looks up what the grant itself landed last at each path.
func (c *commit) bases(r store.Reader) error {
	paths := make([]string, len(c.items))
	for i, it := range c.items {
		paths[i] = it.target
	}
	landed, err := r.Landed(c.grant.ID, paths...)
	if err != nil {
		return err
	}
	for _, it := range c.items {
		left, ok := landed[it.target]
		it.first = !ok
		if ok && it.Base == nil {
			it.Base = &left.Version
		}
	}
	return nil
}

// refusal joins what is wrong with single paths. A grant that is not live is wrong
// for each of them.
func (c *commit) refusal(ctx context.Context, err error, refused ...error) error {
	if err != nil {
		for _, it := range c.items {
			if it.refused {
				continue
			}
			e := c.g.grantRefused(err, it.target, c.grant)
			if e == err {
				return err // not about the grant at all
			}
			refused = append(refused, e)
		}
	}
	joined := errors.Join(refused...)
	if err := c.g.addHolders(ctx, violations(joined)); err != nil {
		return errors.Join(joined, err)
	}
	return joined
}

// prepare fills the stage. A single file needs no durable name in it: if the
// power fails before it is in its place, the landing is as if it had never been.
func (c *commit) prepare(s *stage) error {
	if err := s.fill(c.items); err != nil {
		return failed("stage", err)
	}
	for n, it := range c.items {
		c.landing.Changes[n] = it.alter
		if it.Body == nil && it.from == "" && !it.Delete && it.alter.New.Sum != it.alter.Old.Sum {
			return changedSince(it.target, c.grant.ID, it.alter.Old, it.alter.New)
		}
	}
	if len(c.items) == 1 {
		return nil
	}
	if err := s.noteDirs(c.items); err != nil {
		return failed("stage", err)
	}
	if err := s.settle(); err != nil {
		return failed("sync stage", err)
	}
	return nil
}

func (c *commit) changesNothing() bool {
	for _, it := range c.items {
		if it.alter.Old != it.alter.New {
			return false
		}
	}
	return true
}

// decide makes the last checks again, in the transaction that decides the landing.
func (c *commit) decide(ctx context.Context) error {
	var refused []error
	err := c.g.decide(ctx, c.grant, c.landing, func(r store.Reader, rec *store.Record) error {
		if err := sameGrant(rec, c.fence); err != nil {
			return err
		}
		if err := c.seen.unmoved(r, c.grant.ID); err != nil {
			return err
		}
		refused = c.coverage(rec)
		return errors.Join(refused...)
	})
	if refused != nil {
		return c.refusal(ctx, nil, refused...)
	}
	return c.refusal(ctx, err)
}

// Seen is what the author of a change saw of the tree: everything that was landed up to
// a number, in the places that the change depends on.
type Seen struct {
	Seq   uint64
	Reads []lockkeeper.Target
}

// CommitSeen is Commit for a change that was tested against what its author saw. If
// another landing changed one of those files since, it returns a *lockkeeper.MovedError.
// The check is part of the transaction that decides, so no landing can come between.
// The caller has stored the tested work: unlike Commit, CommitSeen keeps only changes
// that were refused because of a path.
func (g *Gate) CommitSeen(ctx context.Context, grant *lockkeeper.Grant, changes []Change, seen Seen) (*lockkeeper.Landing, error) {
	c := g.newCommit(grant)
	c.seen, c.keepWith = seen, c.refused
	l, err := c.run(ctx, changes)
	if err != nil {
		return nil, c.refused(ctx, err)
	}
	return l, nil
}

// seenPage is how many landings one look reads.
const seenPage = 200

// unmoved refuses when a landing of another grant has changed one of the places since.
func (s Seen) unmoved(r store.Reader, grantID string) error {
	if len(s.Reads) == 0 {
		return nil
	}
	for after := s.Seq; ; {
		page, err := r.Landings(store.LandingQuery{After: after, Limit: seenPage})
		if err != nil {
			return err
		}
		for _, l := range page {
			after = l.Seq
			if path, moved := s.movedBy(l); moved && l.State != lockkeeper.Undone && (grantID == "" || l.GrantID != grantID) {
				return &lockkeeper.MovedError{Path: path, Landing: l.Seq, Holder: l.Holder, At: l.At}
			}
		}
		if len(page) < seenPage {
			return nil
		}
	}
}

func (s Seen) movedBy(l *lockkeeper.Landing) (path string, moved bool) {
	for _, change := range l.Changes {
		at := lockkeeper.Target{Path: change.Path, Kind: lockkeeper.File}
		for _, read := range s.Reads {
			if read.Overlaps(at) {
				return change.Path, true
			}
		}
	}
	return "", false
}

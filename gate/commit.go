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

// An item is one change of a commit in progress.
type item struct {
	Change
	target string
	mode   fs.FileMode
	alter  lockkeeper.PathChange
	open   Body // the content to stage

	dir     *dirID // the directory of the path; nil if it is missing
	refused bool   // the first check refused the path
	first   bool   // the grant has landed nothing at this path

	entry rescue.Entry // the rescue entry; without an ID if the content is not on the shelf
}

// Write is Commit for one file.
func (g *Gate) Write(ctx context.Context, grant *lockkeeper.Grant, path string, content []byte) (*lockkeeper.Landing, error) {
	return g.Commit(ctx, grant, []Change{Put(path, content)})
}

// Commit lands all changes or none. It returns a nil landing if the tree already has
// them. A refusal is a *lockkeeper.LockViolationError, or several joined, and leaves the
// tree and the grant unchanged. Canceling ctx has no effect after the landing is decided.
//
// If Commit fails, the new content is on the rescue shelf, or in a landing that recovery
// will complete or roll back. If the shelf fails too, the error is a *NotKeptError.
func (g *Gate) Commit(ctx context.Context, grant *lockkeeper.Grant, changes []Change) (*lockkeeper.Landing, error) {
	c := g.newCommit(grant)
	c.keepWith = c.failed
	l, err := c.run(ctx, changes)
	if err != nil {
		return nil, c.failed(ctx, err)
	}
	return l, nil
}

// Apply lands the permitted changes in one landing and returns an error for each of the
// others. It keeps content that does not land as Commit does.
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
	return &commit{g: g, grant: grant, put: g.shelf.Put, checker: g.opt.Protected.Checker(), landing: &lockkeeper.Landing{Site: g.site, Holder: g.opt.Actor.Name}}
}

type commit struct {
	g        *Gate
	grant    *lockkeeper.Grant
	fence    uint64    // the fence of the grant at the first check
	since    time.Time // when the grant was acquired, by the clock of this host
	checker  *protect.Checker
	put      put
	answered []string // ids of entries that do not count as equal to a change that is kept
	items    []*item
	landing  *lockkeeper.Landing
	seen     Seen

	keepWith func(context.Context, error) error // keeps new content before a rolled back landing ends; nil if the caller does
	kept     bool                               // all new content is safe
	pending  bool                               // recovery must complete the landing or roll it back
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
			// The landing may have been decided although this call failed. Then recovery completes
			// it; otherwise recovery removes the stage.
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

// failed describes a disk error that occurred before the landing was decided.
func failed(op string, err error) error {
	return fmt.Errorf("%s: %w; nothing in the tree was changed", op, err)
}

// check makes the three checks and reads the expected version of each path. It reports
// the problems of all paths together.
func (c *commit) check(ctx context.Context, changes []Change) error {
	refused, err := c.resolve(changes)
	if err != nil {
		return err
	}
	err = c.g.viewGrant(ctx, c.grant, func(r store.Reader, rec *store.Record) error {
		refused = append(refused, c.coverage(rec)...)
		if rec == nil {
			return nil
		}
		c.fence = rec.Fence
		c.since = rec.AcquiredAt.Add(r.Now().Skew)
		return c.bases(r)
	})
	return c.refusal(ctx, err, refused...)
}

// resolve makes an item of each change, even after an error, and applies the first check.
func (c *commit) resolve(changes []Change) (refused []error, err error) {
	seen := map[string]bool{}
	var targets []string
	for _, change := range changes {
		it := &item{Change: change}
		var wrong error
		if it.target, wrong = c.g.resolve(c.checker, change.Path); wrong != nil {
			it.refused = true
			it.target = cmp.Or(it.target, change.Path)
			if isRefusal(wrong) {
				refused = append(refused, wrong)
			} else {
				err = cmp.Or(err, wrong)
			}
		}
		if seen[it.target] {
			err = cmp.Or(err, error(&lockkeeper.InputError{Field: "changes", Value: change.Path, Reason: "the commit changes this path twice", Next: "name each file once"}))
		}
		seen[it.target] = true
		it.alter.Path = it.target
		c.items = append(c.items, it)
		c.landing.Changes = append(c.landing.Changes, it.alter)
		if !it.Delete {
			targets = append(targets, it.target)
		}
	}
	made := c.checker.CompletesGit(targets)
	for _, it := range c.items {
		if !it.refused && slices.Contains(made, it.target) {
			it.refused = true
			refused = append(refused, protected(it.target, protect.Git))
		}
	}
	if len(changes) == 0 || len(changes) > lockkeeper.MaxTargets {
		err = &lockkeeper.InputError{Field: "changes", Value: fmt.Sprint(len(changes)), Reason: fmt.Sprintf("a commit has 1 to %d changes", lockkeeper.MaxTargets), Next: "name at least one path, or split the commit"}
	}
	return refused, err
}

// isRefusal reports whether an error concerns one path rather than the disk or the store.
func isRefusal(err error) bool {
	code := lockkeeper.CodeOf(err)
	return code == lockkeeper.CodeViolation || code == lockkeeper.CodeInput
}

// coverage applies the third check to all items.
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

// bases sets the base of each item without one to the version that the grant last landed.
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

// refusal joins the errors of single paths. An error of the grant applies to all paths.
func (c *commit) refusal(ctx context.Context, err error, refused ...error) error {
	if err != nil {
		for _, it := range c.items {
			if it.refused {
				continue
			}
			e := c.g.grantRefused(err, it.target, c.grant)
			if e == err {
				return err // the error does not concern the grant
			}
			refused = append(refused, e)
		}
	}
	joined := errors.Join(refused...)
	if err := c.g.addHolders(ctx, lockkeeper.Violations(joined)); err != nil {
		return errors.Join(joined, err)
	}
	return joined
}

// prepare fills the stage. The name of a single file need not be durable: if power fails
// before the file is in the tree, recovery rolls the landing back.
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
	if err := s.syncNames(); err != nil {
		return failed("sync stage", err)
	}
	return nil
}

func (c *commit) changesNothing() bool {
	return !slices.ContainsFunc(c.items, func(it *item) bool { return it.alter.Old != it.alter.New })
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

// Seen says which version of the tree a change was tested against: the last landing it
// saw, and the files and directories that it depends on.
type Seen struct {
	Seq   uint64
	Reads []lockkeeper.Target
}

// CommitSeen is Commit for a change that was tested against the tree that seen describes.
// If another landing changed a file in seen.Reads since, it returns a
// *lockkeeper.MovedError. The check is part of the transaction that decides, so no landing
// can come between. The caller has stored the tested work, so CommitSeen keeps only changes
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

// seenPage is the number of landings that one query reads.
const seenPage = 200

// unmoved returns a *lockkeeper.MovedError if a landing of another grant changed s.Reads.
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

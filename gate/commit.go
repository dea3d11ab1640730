package gate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"lockkeeper"
)

// item is one change on its way.
type item struct {
	Change
	target string
	mode   fs.FileMode
	alter  lockkeeper.Alteration
	open   Body // the content to stage
}

// Write is Commit for one file.
func (g *Gate) Write(ctx context.Context, grant *lockkeeper.Grant, path string, content []byte) (*lockkeeper.Landing, error) {
	return g.Commit(ctx, grant, []Change{Put(path, content)})
}

// Commit lands changes as one unit: all of them or none. It returns nil when the
// tree is already as wanted. A refusal is a *lockkeeper.LockViolationError, or
// several joined, and leaves the tree, and the grant, as they were. Ending ctx
// stops it up to the moment in which the landing is decided.
func (g *Gate) Commit(ctx context.Context, grant *lockkeeper.Grant, changes []Change) (*lockkeeper.Landing, error) {
	if grant == nil {
		grant = &lockkeeper.Grant{}
	}
	c := &commit{g: g, grant: grant, landing: &lockkeeper.Landing{Site: g.site, Holder: g.opt.Actor.Name}}
	l, err := c.run(ctx, changes)
	if err != nil {
		return nil, g.recordGaps(ctx, grant, c.items, err)
	}
	return l, nil
}

// commit is one Commit on its way.
type commit struct {
	g       *Gate
	grant   *lockkeeper.Grant
	fence   uint64 // of the grant when it was looked at
	items   []*item
	landing *lockkeeper.Landing
}

func (c *commit) run(ctx context.Context, changes []Change) (*lockkeeper.Landing, error) {
	if err := c.check(ctx, changes); err != nil {
		return nil, err
	}
	if err := c.plan(); err != nil {
		return nil, err
	}
	s, err := c.g.makeStage(c.g.stages, func() string {
		c.landing.Commit = newCommit()
		return stageName(c.grant.ID, c.fence, c.landing.Commit)
	})
	if err != nil {
		return nil, c.failed("stage", err)
	}
	if err := c.prepare(s); err != nil {
		return nil, errors.Join(err, s.discard())
	}
	if c.changesNothing() {
		return nil, s.discard()
	}
	end := c.g.takeOff(c.grant.ID)
	defer end()
	if err := c.decide(ctx); err != nil {
		if lockkeeper.CodeOf(err) == lockkeeper.CodeStore {
			// It may have been decided all the same. The stage stays for recovery, which
			// knows.
			return nil, errors.Join(err, s.dir.Close())
		}
		return nil, errors.Join(err, s.discard())
	}
	p := c.g.pass(c.landing, s)
	if err := p.land(context.WithoutCancel(ctx)); err != nil {
		return nil, err
	}
	c.g.putDone(c.grant.ID, c.landing.Seq)
	return c.landing, nil
}

// failed explains an error of the disk before anything was decided.
func (c *commit) failed(op string, err error) error {
	return fmt.Errorf("%s: %w; nothing in the tree was changed", op, err)
}

// check makes the three checks, and learns what each path is expected to hold.
func (c *commit) check(ctx context.Context, changes []Change) error {
	g := c.g
	if len(changes) == 0 || len(changes) > lockkeeper.MaxTargets {
		return &lockkeeper.InputError{Field: "changes", Value: fmt.Sprint(len(changes)), Reason: fmt.Sprintf("between 1 and %d can land as one unit", lockkeeper.MaxTargets), Next: "split them, or name one"}
	}
	var refused []error
	seen := map[string]bool{}
	for _, change := range changes {
		it := &item{Change: change}
		var err error
		if it.target, err = g.resolve(change.Path); err != nil {
			if lockkeeper.CodeOf(err) != lockkeeper.CodeViolation {
				return err
			}
			refused = append(refused, err)
		}
		if seen[it.target] {
			return &lockkeeper.InputError{Field: "path", Value: change.Path, Reason: "changed twice in one commit", Next: "name each file once"}
		}
		seen[it.target] = true
		it.alter.Path = it.target
		c.items = append(c.items, it)
		c.landing.Changes = append(c.landing.Changes, it.alter)
	}
	if refused != nil {
		return errors.Join(refused...)
	}
	err := g.look(ctx, c.grant, func(r lockkeeper.Reader, rec *lockkeeper.Record) error {
		if err := c.coverage(rec); err != nil || rec == nil {
			return err
		}
		c.fence = rec.Fence
		return c.bases(r)
	})
	return c.refusal(ctx, err)
}

// coverage is the third check for all items.
func (c *commit) coverage(rec *lockkeeper.Record) error {
	var refused []error
	for _, it := range c.items {
		if err := c.g.covered(rec, it.target); err != nil {
			refused = append(refused, err)
		}
	}
	return errors.Join(refused...)
}

// bases looks up what the grant itself landed last at each path.
func (c *commit) bases(r lockkeeper.Reader) error {
	paths := make([]string, len(c.items))
	for i, it := range c.items {
		paths[i] = it.target
	}
	landed, err := r.Landed(c.grant.ID, paths...)
	if err != nil {
		return err
	}
	for _, it := range c.items {
		if left, ok := landed[it.target]; ok && it.Base == nil {
			it.Base = &left.Version
		}
	}
	return nil
}

// refusal makes one violation for each path of a grant that is not live, and adds
// who holds the paths now.
func (c *commit) refusal(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	if lockkeeper.CodeOf(err) != lockkeeper.CodeViolation {
		var refused []error
		for _, it := range c.items {
			refused = append(refused, c.g.grantRefused(err, it.target, c.grant))
			if refused[0] == err {
				return err // not about the grant at all
			}
		}
		err = errors.Join(refused...)
	}
	for _, v := range violations(err) {
		if e := c.g.withHolder(ctx, v); e != error(v) {
			return e
		}
	}
	return err
}

// plan looks at the disk: what each path holds now, whether that is what was
// expected, and which directories are missing.
func (c *commit) plan() error {
	var refused []error
	versions := map[string]lockkeeper.Version{}
	for _, it := range c.items {
		old, err := c.g.lookAt(it.target)
		if err != nil {
			return err
		}
		versions[it.target] = old
		it.alter.Old = old
		if it.Base != nil && *it.Base != old {
			refused = append(refused, changedSince(it.target, c.grant.ID, *it.Base, old))
			continue
		}
		if it.Body == nil && it.from == "" && !it.Delete && !old.Exists() {
			return &lockkeeper.InputError{Field: "path", Value: it.target, Reason: "there is no file whose mode could be changed", Next: "write it first"}
		}
	}
	if refused != nil {
		return errors.Join(refused...)
	}
	for _, it := range c.items {
		if err := c.source(it, versions); err != nil {
			return err
		}
	}
	made, err := c.g.missingDirs(c.items)
	c.landing.Made = made
	return err
}

// source decides where an item's new content comes from and which mode it gets.
func (c *commit) source(it *item, versions map[string]lockkeeper.Version) error {
	it.mode = 0o644
	from := it.target
	if it.from != "" {
		var err error
		if from, err = c.g.resolve(it.from); err != nil {
			return err
		}
		if !versions[from].Exists() {
			return &lockkeeper.InputError{Field: "path", Value: it.from, Reason: "there is no such file to rename", Next: "check its name"}
		}
	}
	if v := versions[from]; v.Exists() {
		it.mode = v.Mode
	}
	if it.Mode != nil {
		it.mode = it.Mode.Perm()
	}
	it.open = it.Body
	if it.open == nil {
		it.open = func() (io.ReadCloser, error) {
			dir, name, err := c.g.openParent(from)
			if err != nil {
				return nil, err
			}
			f, err := c.g.disk.OpenFile(dir, name)
			return f, errors.Join(err, dir.Close())
		}
	}
	return nil
}

// prepare fills the stage. A single file needs no durable name in it: if the
// power fails before it is in its place, the landing is as if it had never been.
func (c *commit) prepare(s *stage) error {
	if err := s.fill(c.items); err != nil {
		return c.failed("stage", err)
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
	if err := s.settle(); err != nil {
		return c.failed("sync stage", err)
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

// decide is the commit point.
func (c *commit) decide(ctx context.Context) error {
	done := c.g.takeDone(c.grant.ID)
	err := c.g.locks.Land(ctx, c.grant.ID, c.grant.Token, c.landing, func(rec *lockkeeper.Record) error {
		if err := sameGrant(rec, c.fence); err != nil {
			return err
		}
		return c.coverage(rec)
	}, done...)
	if err != nil {
		c.g.putDone(c.grant.ID, done...)
	}
	return c.refusal(ctx, err)
}

// lookAt is what a path of the tree holds, refused where a file there cannot be
// replaced.
func (g *Gate) lookAt(path string) (lockkeeper.Version, error) {
	bad := func(reason, next string) error {
		return &lockkeeper.InputError{Field: "path", Value: path, Reason: reason, Next: next}
	}
	dir, name, err := g.openParent(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return lockkeeper.Version{}, nil
	case isElsewhere(err):
		return lockkeeper.Version{}, justReplaced(path)
	case err != nil:
		return lockkeeper.Version{}, err
	}
	defer dir.Close()
	if err := writable(dir, path); err != nil {
		return lockkeeper.Version{}, err
	}
	st, err := g.disk.Lstat(dir, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return lockkeeper.Version{}, nil
	case err != nil:
		return lockkeeper.Version{}, err
	case st.Mode.IsDir():
		return lockkeeper.Version{}, bad("a directory, and the gate writes files", "name the files in it")
	case !st.Mode.IsRegular():
		return lockkeeper.Version{}, bad("neither a file nor a directory", "write regular files only")
	case st.Links > 1:
		return lockkeeper.Version{}, bad(fmt.Sprintf("the file has %d hard links, and its other names would keep the old content", st.Links), "break the link first")
	case st.Mode.Perm()&0o222 == 0:
		return lockkeeper.Version{}, bad("the file is read-only", "make it writable first, if it is meant to be changed")
	}
	return g.observe(dir, name)
}

// justReplaced refuses a path whose directory was one when the path was resolved.
func justReplaced(path string) error {
	return &lockkeeper.InputError{Field: "path", Value: path, Reason: "its directory has just been replaced by a link, a mount or a file", Next: "look at it, and try again"}
}

// writable refuses a directory in which nothing may be renamed.
func writable(dir *os.File, path string) error {
	info, err := dir.Stat()
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o222 != 0 && mayWrite(dir) {
		return nil
	}
	return &lockkeeper.InputError{Field: "path", Value: path, Reason: "its directory is read-only", Next: "make the directory writable first"}
}

func changedSince(path, grantID string, want, found lockkeeper.Version) error {
	return &lockkeeper.LockViolationError{Check: checkBase, Path: path, GrantID: grantID,
		Reason: fmt.Sprintf("it was changed by somebody else: expected %s, found %s", brief(want), brief(found)),
		Next:   "look at the change, and write again on top of it; what was to be written is kept: lockkeeper rescue list"}
}

// brief is a version short enough to be read.
func brief(v lockkeeper.Version) string {
	if !v.Exists() {
		return "nothing"
	}
	return fmt.Sprintf("%s %04o %x", v.Kind, v.Mode.Perm(), v.Sum[:6])
}

// missingDirs lists the directories that new files need and that are not there,
// outermost first.
func (g *Gate) missingDirs(items []*item) ([]string, error) {
	var missing []string
	known := map[string]bool{lockkeeper.Root: true}
	for _, it := range items {
		if it.alter.Old.Exists() || it.Delete {
			continue
		}
		for dir, _ := split(it.target); !known[dir]; dir, _ = split(dir) {
			f, err := g.disk.OpenDir(g.root, dir)
			if err == nil {
				known[dir] = true
				if err := errors.Join(writable(f, it.target), g.disk.Close(f)); err != nil {
					return nil, err
				}
				break
			}
			if isElsewhere(err) {
				return nil, justReplaced(it.target)
			}
			if !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			known[dir] = true
			missing = append(missing, dir)
		}
	}
	return unique(missing), nil
}

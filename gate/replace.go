package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"lockkeeper"
	"lockkeeper/internal/project/protect"
	"lockkeeper/store"
)

// draftDir is the subdirectory of the locked directory in which a new version is prepared.
const draftDir = "tmp"

// ReplaceDir replaces the directory target/final as a whole, in the ten steps of the
// concurrency specification. The caller does the first and the last: it acquires a write
// lock on the directory target, and releases it. fill writes the new content into the
// directory it is given.
//
//	2 fill writes into target/tmp/<id>       7 the parent of final is synced
//	3 each file in it is synced              8 the manifest says committed
//	4 the directory is synced                9 durably
//	5 it is on the same device as final     10 the caller releases
//	6 it is exchanged with final
//
// Between 5 and 6 the landing is decided. So a writer that crashes or is fenced leaves
// either the old directory or the new one. The event landed says that steps 2 to 5 are
// done, the event replaced the steps 6 to 9. If the directory has that content already,
// ReplaceDir returns nil.
func (g *Gate) ReplaceDir(ctx context.Context, grant *lockkeeper.Grant, target, final string, fill func(dir string) error) (*lockkeeper.Landing, error) {
	r, err := g.planReplace(ctx, grant, target, final)
	if err != nil {
		return nil, err
	}
	return r.replace(ctx, func(*draft) error { return fill(filepath.Join(g.paths.Dir(), r.landing.Draft)) })
}

// replace does steps 2 to 9. Without fill it removes the directory.
func (r *replacement) replace(ctx context.Context, fill func(*draft) error) (*lockkeeper.Landing, error) {
	s, err := r.draft(fill)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if r.landing.Changes[0].Old == r.landing.Changes[0].New {
		return nil, s.discard()
	}
	g := r.g
	end := g.beginCommit(r.grant.ID)
	defer end()
	p := g.newApplier(r.landing, s)
	defer p.close()
	if err := r.decide(ctx); err != nil {
		if lockkeeper.CodeOf(err) == lockkeeper.CodeStore {
			return nil, err
		}
		r.landing.At = time.Now()
		return nil, errors.Join(err, p.keepNewContent(err), s.discard())
	}
	p.keepWith = func(_ context.Context, told error) error { return errors.Join(told, p.keepNewContent(told)) }
	if err := p.apply(context.WithoutCancel(ctx)); err != nil {
		return nil, err
	}
	// Step 9 must not wait for the next transaction.
	return r.landing, g.endReplaced(context.WithoutCancel(ctx), r.landing, p.ending())
}

// A replacement is one call of ReplaceDir.
type replacement struct {
	g       *Gate
	grant   *lockkeeper.Grant
	fence   uint64
	target  string
	landing *lockkeeper.Landing
}

func (g *Gate) planReplace(ctx context.Context, grant *lockkeeper.Grant, target, final string) (*replacement, error) {
	if grant == nil {
		grant = &lockkeeper.Grant{}
	}
	bad := func(field, value, reason string) error {
		return &lockkeeper.InputError{Field: field, Value: value, Reason: reason, Next: "name a directory and a subdirectory of it"}
	}
	if final == "" || final == draftDir || filepath.Base(final) != final || final == "." || final == ".." {
		return nil, bad("final", final, "not the name of a directory in the target")
	}
	at, err := g.paths.Resolve("", target+"/", lockkeeper.Write)
	if err != nil {
		return nil, err
	}
	if at.Path == lockkeeper.Root {
		return nil, bad("target", target, "the whole codebase, whose directories cannot be replaced one by one")
	}
	in, err := g.paths.Resolve("", at.Path+"/"+final+"/", lockkeeper.Write)
	if err != nil {
		return nil, err
	}
	checker := g.opt.Protected.Checker()
	for _, written := range []string{in.Path, path.Join(at.Path, draftDir)} {
		if err := g.allowed(checker, written); err != nil {
			return nil, err
		}
	}
	r := &replacement{g: g, grant: grant, target: at.Path, landing: &lockkeeper.Landing{Site: g.site, Holder: g.opt.Actor.Name}}
	err = g.viewGrant(ctx, grant, func(_ store.Reader, rec *store.Record) error {
		if rec != nil {
			r.fence = rec.Fence
		}
		return g.coveredDir(rec, at.Path)
	})
	if err != nil {
		return nil, g.refuseDir(ctx, err, in.Path, grant)
	}
	old, err := g.observePath(in.Path)
	if err != nil {
		return nil, err
	}
	if old.Exists() && old.Kind != lockkeeper.Dir {
		return nil, bad("final", in.Path, "a file, not a directory")
	}
	r.landing.Changes = []lockkeeper.PathChange{{Path: in.Path, Old: old}}
	if !old.Exists() {
		return r, nil
	}
	dir, name, err := g.openParent(in.Path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	_, err = g.unprotected(checker, dir, name, in.Path)
	return r, err
}

// unprotected refuses a directory that contains a protected path. It returns the files in
// the directory as if it were at path.
func (g *Gate) unprotected(checker *protect.Checker, at *os.File, name, path string) (files []string, err error) {
	if err := g.allowed(checker, path); err != nil {
		return nil, err
	}
	dir, err := g.disk.OpenDir(at, name)
	if isElsewhere(err) { // the path leads through something that is not a directory
		return []string{path}, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.disk.Close(dir)) }()
	names, err := g.disk.List(dir)
	if len(names) == 0 {
		files = []string{path}
	}
	for _, name := range names {
		some, found := g.unprotected(checker, dir, name, path+"/"+name)
		files, err = append(files, some...), errors.Join(err, found)
	}
	return files, err
}

// refuseDir returns the reason why a directory is not replaced, and records a refusal as a
// gap. The caller keeps the new content.
func (g *Gate) refuseDir(ctx context.Context, err error, path string, grant *lockkeeper.Grant) error {
	err = g.grantRefused(err, path, grant)
	refused := lockkeeper.Violations(err)
	if len(refused) == 0 {
		return err
	}
	if err := g.addHolders(ctx, refused); err != nil {
		return errors.Join(refused[0], err)
	}
	return errors.Join(err, g.noteGap(ctx, grant, path, refused[0].Check, refused[0].Reason, nil))
}

// coveredDir applies the third check to a directory: the grant must hold it, or a directory
// above it, for writing with everything below.
func (g *Gate) coveredDir(rec *store.Record, dir string) error {
	if rec == nil {
		return nil
	}
	for at, more := dir, true; more; at, more = lockkeeper.Parent(at) {
		if i, ok := lockkeeper.Find(rec.Locks, at); ok && rec.Locks[i].Mode == lockkeeper.Write && rec.Locks[i].Kind.IsTree() {
			return nil
		}
	}
	next := "lockkeeper lock acquire --policy dal --write " + dir + "/, or an operation whose resource has it in its files: lockkeeper op"
	if err := g.covered(rec, dir); err != nil {
		if v, ok := errors.AsType[*lockkeeper.LockViolationError](err); ok {
			v.Next = next
		}
		return err
	}
	return &lockkeeper.LockViolationError{Check: checkCoverage, Path: dir, GrantID: rec.ID, Reason: "the grant holds it as a file, not as a directory", Next: next}
}

// draft does steps 2 to 5. It notes the path of the draft in the stage, for recovery.
func (r *replacement) draft(fill func(*draft) error) (*stage, error) {
	g := r.g
	s, err := g.makeStage(g.stages, func() string {
		r.landing.Commit = newID()
		return stageName(r.grant.ID, r.fence, r.landing.Commit)
	})
	if err != nil {
		return nil, err
	}
	if fill == nil {
		err = s.syncNames()
	} else {
		r.landing.Draft = r.target + "/" + draftDir + "/" + r.landing.Commit
		err = r.fill(s, fill)
	}
	if err != nil {
		defer s.close()
		return nil, errors.Join(fmt.Errorf("nothing was replaced: %s: %w", cmp.Or(r.landing.Draft, r.landing.Changes[0].Path), err), s.discard())
	}
	return s, nil
}

func (r *replacement) fill(s *stage, fill func(*draft) error) error {
	g := r.g
	if err := s.noteDraft(r.landing.Draft); err != nil {
		return err
	}
	mode := fs.FileMode(0o755)
	if old := r.landing.Changes[0].Old; old.Exists() {
		mode = old.Mode
	}
	if err := g.makeDir(s.draft.in, s.draft.name, mode); err != nil {
		return err
	}
	if err := fill(s.draft); err != nil {
		return err
	}
	checker := g.opt.Protected.Checker()
	files, err := g.unprotected(checker, s.draft.in, s.draft.name, r.landing.Changes[0].Path)
	if err != nil {
		return err
	}
	if made := checker.CompletesGit(files); len(made) > 0 {
		return protected(made[0], protect.Git)
	}
	if err := g.syncTree(s.draft.in, s.draft.name); err != nil {
		return err
	}
	if err := g.disk.Sync(s.draft.in); err != nil {
		return err
	}
	if r.landing.Changes[0].New, err = g.observe(s.draft.in, s.draft.name); err != nil {
		return err
	}
	return r.checkDevice(s.draft.in)
}

// checkDevice does step 5, because a rename works only within one device.
func (r *replacement) checkDevice(drafts *os.File) error {
	a, err := r.g.disk.Lstat(drafts, r.landing.Commit)
	if err != nil {
		return err
	}
	dir, _, err := r.g.openParent(r.landing.Changes[0].Path)
	if err != nil {
		return err
	}
	defer dir.Close()
	b, err := r.g.disk.Lstat(dir, ".")
	if err == nil && a.Dev != b.Dev {
		err = fmt.Errorf("it is on another device (%d) than the directory to replace (%d)", a.Dev, b.Dev)
	}
	return err
}

// decide makes the last checks again, in the transaction that decides the landing.
func (r *replacement) decide(ctx context.Context) error {
	g := r.g
	err := g.decide(ctx, r.grant, r.landing, func(_ store.Reader, rec *store.Record) error {
		if err := sameGrant(rec, r.fence); err != nil {
			return err
		}
		return g.coveredDir(rec, r.target)
	})
	if err != nil {
		err = g.refuseDir(ctx, err, r.landing.Changes[0].Path, r.grant)
	}
	return err
}

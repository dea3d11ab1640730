package gate

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/internal/machine/disk"
	"lockkeeper/rescue"
)

// Replaced returns the directory that a landing replaced as a whole, or removed by undoing that;
// empty if it changed files.
func Replaced(l *lockkeeper.Landing) string {
	if c := l.Changes[0]; c.Old.Kind == lockkeeper.Dir || c.New.Kind == lockkeeper.Dir {
		return c.Path
	}
	return ""
}

// undoDir undoes the landing of a directory: it puts the original into its place in the same
// steps, or removes the directory if the landing had created it. The grant must hold the
// directory above it, as for ReplaceDir.
func (g *Gate) undoDir(ctx context.Context, grant *lockkeeper.Grant, l *lockkeeper.Landing) (*lockkeeper.Landing, error) {
	was := l.Changes[0]
	target, final := split(was.Path)
	r, err := g.planReplace(ctx, grant, target, final)
	if err != nil {
		return nil, err
	}
	r.landing.Undoes = l.Seq
	if r.landing.Changes[0].Old != was.New {
		return nil, g.undoConflict(ctx, l, []string{was.Path})
	}
	if !was.Old.Exists() {
		return r.replace(ctx, nil)
	}
	return r.replace(ctx, func(d *draft) error { return g.copyDir(ctx, g.kept, originalAt(l, 0), d) })
}

// keptNote begins the content of a rescue entry of kind Whole; the path follows.
const keptNote = "kept as it was in "

// KeptDir returns the directory that a rescue entry of kind Whole stands for; empty if it
// stands for anything else.
func KeptDir(root string, shelf *rescue.Shelf, e rescue.Entry) (dir string, err error) {
	if e.Kind != rescue.Whole {
		return "", nil
	}
	f, err := shelf.Content(e.ID)
	if err != nil {
		return "", err
	}
	note, err := io.ReadAll(io.LimitReader(f, lockkeeper.MaxPathSize))
	if err := errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	at, ok := strings.CutPrefix(strings.TrimSpace(string(note)), keptNote+stateDir+"/"+keptDir+"/")
	if !ok || !filepath.IsLocal(filepath.FromSlash(at)) {
		return "", nil
	}
	dir = filepath.Join(root, stateDir, keptDir, filepath.FromSlash(at))
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		return "", unlessMissing(err)
	}
	return dir, nil
}

// LandKeptDir replaces a directory with the one that a rescue entry stands for, as ReplaceDir
// does. Without ontoCurrent it refuses if the directory has changed since the entry was kept.
func (g *Gate) LandKeptDir(ctx context.Context, grant *lockkeeper.Grant, e rescue.Entry, ontoCurrent bool) (*lockkeeper.Landing, error) {
	kept, err := KeptDir(g.paths.Dir(), g.shelf, e)
	if err == nil && kept == "" {
		err = &lockkeeper.InputError{Field: "rescue id", Value: e.ID, Reason: "it is not a directory", Next: "lockkeeper rescue show " + e.ID}
	}
	if err != nil {
		return nil, err
	}
	target, final := split(e.Path)
	r, err := g.planReplace(ctx, grant, target, final)
	if err != nil {
		return nil, err
	}
	if now := r.landing.Changes[0].Old; now != e.Base && !ontoCurrent {
		return nil, changedSince(e.Path, grant.ID, e.Base, now)
	}
	return r.replaceFrom(ctx, kept)
}

// ReplaceDirFrom does the same as ReplaceDir with a copy of a directory, which may be on
// another disk. It copies files and directories with their permissions, and refuses anything
// else.
func (g *Gate) ReplaceDirFrom(ctx context.Context, grant *lockkeeper.Grant, target, final, from string) (*lockkeeper.Landing, error) {
	r, err := g.planReplace(ctx, grant, target, final)
	if err != nil {
		return nil, err
	}
	return r.replaceFrom(ctx, from)
}

func (r *replacement) replaceFrom(ctx context.Context, from string) (*lockkeeper.Landing, error) {
	src, err := os.OpenFile(from, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, &lockkeeper.InputError{Field: "from", Value: from, Reason: disk.Reason(err), Next: "name a directory that you may read"}
	}
	defer src.Close()
	if r.isAbove(src) {
		return nil, &lockkeeper.InputError{Field: "from", Value: from, Reason: "the new version is prepared inside it, in " + r.target + "/" + draftDir, Next: "name a directory that has only the new content"}
	}
	return r.replace(ctx, func(d *draft) error {
		into, err := r.g.disk.OpenDir(d.in, d.name)
		if err != nil {
			return err
		}
		return errors.Join(r.g.copyEntries(ctx, src, into), r.g.disk.Close(into))
	})
}

// isAbove reports whether the draft is made in a directory or below it. A copy of that directory
// would have itself in it, without end.
func (r *replacement) isAbove(dir *os.File) bool {
	is, err := dir.Stat()
	for at := filepath.Join(r.g.paths.Dir(), r.target, draftDir); err == nil; at = filepath.Dir(at) {
		if info, err := os.Stat(at); err == nil && os.SameFile(info, is) {
			return true
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	return false
}

// copyDir copies a directory with its permissions into a draft.
func (g *Gate) copyDir(ctx context.Context, at *os.File, path string, d *draft) error {
	src, err := g.disk.OpenDir(at, path)
	if err != nil {
		return err
	}
	defer src.Close()
	into, err := g.disk.OpenDir(d.in, d.name)
	if err != nil {
		return err
	}
	info, err := src.Stat()
	if err == nil {
		err = errors.Join(g.copyEntries(ctx, src, into), g.disk.Chmod(into, info.Mode().Perm()))
	}
	return errors.Join(err, g.disk.Close(into))
}

func (g *Gate) copyEntries(ctx context.Context, src, into *os.File) error {
	names, err := g.disk.List(src)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := cmp.Or(context.Cause(ctx), g.copyEntry(ctx, src, into, name)); err != nil {
			return err
		}
	}
	return nil
}

func (g *Gate) copyEntry(ctx context.Context, src, into *os.File, name string) error {
	st, err := g.disk.Lstat(src, name)
	switch {
	case err != nil:
		return err
	case st.Mode.IsDir():
		if err := g.makeDir(into, name, st.Mode.Perm()); err != nil {
			return err
		}
		return g.copyDir(ctx, src, name, &draft{into, name})
	case !st.Mode.IsRegular():
		return irregularEntry(src, name)
	}
	from, err := g.disk.OpenFile(src, name)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := g.disk.Create(into, name)
	if err != nil {
		return err
	}
	err = g.stream(from, func(data []byte) (int, error) { return len(data), g.disk.Write(to, data) })
	return errors.Join(err, g.disk.Chmod(to, st.Mode.Perm()), g.disk.Close(to))
}

// makeDir makes a directory with permissions that the umask does not limit. Its owner may
// always write to it, because it is filled next.
func (g *Gate) makeDir(at *os.File, name string, mode fs.FileMode) error {
	if err := g.disk.Mkdir(at, name, 0o755); err != nil {
		return err
	}
	dir, err := g.disk.OpenDir(at, name)
	if err != nil {
		return err
	}
	return errors.Join(g.disk.Chmod(dir, mode|0o700), g.disk.Close(dir))
}

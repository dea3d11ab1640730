package gate

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"

	"lockkeeper"
	"lockkeeper/store"
)

// Original opens the content that a file had in a version: that of the file, if it is still the
// same, or that which a later landing replaced. The reader is nil if neither is available.
func (g *Gate) Original(ctx context.Context, path string, v lockkeeper.Version) (io.ReadCloser, error) {
	path, err := g.resolve(g.opt.Protected.Checker(), path)
	if path == "" || err != nil && !isRefusal(err) {
		return nil, err
	}
	if f, err := g.openVersion(path, v); f != nil || err != nil {
		return f, err
	}
	replaced, err := g.landings(ctx, store.LandingQuery{Path: path, Latest: true})
	if err != nil {
		return nil, err
	}
	for _, l := range replaced {
		n := slices.IndexFunc(l.Changes, func(c lockkeeper.PathChange) bool { return c.Path == path && c.Old.Sum == v.Sum && c.New.Sum != v.Sum })
		if n < 0 || !g.isHere(l) {
			continue
		}
		f, err := g.disk.OpenFile(g.kept, originalAt(l, n))
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return nil, nil
}

// openVersion opens the file at a path if its content is that of a version; otherwise the file is nil.
func (g *Gate) openVersion(path string, v lockkeeper.Version) (_ io.ReadCloser, err error) {
	dir, name, err := g.openParent(path)
	if err != nil {
		return nil, unlessMissing(err)
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	f, err := g.disk.OpenFile(dir, name)
	if err != nil {
		return nil, nil // missing, a link or unreadable: an original may still be kept
	}
	now, err := g.versionOf(f)
	if err != nil || now.Sum != v.Sum {
		return nil, f.Close()
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

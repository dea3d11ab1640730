package gate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"lockkeeper"
	"lockkeeper/store"
)

// A Change is one requested change of one path. Put, Delete and
// Rename make them. The caller may then set Base and Mode.
type Change struct {
	Path   string // any spelling relative to the root
	Body   Body   // the new content; nil leaves the content as it is
	Mode   *fs.FileMode
	Delete bool

	// Base is the version that the path must have for the change to land. If it is
	// nil, Commit expects the version that the grant last landed there, or else the
	// version that is there when Commit begins.
	Base *lockkeeper.Version

	// Stored says that the caller keeps the content whether the change lands or not.
	// Otherwise the gate puts content that does not land on the rescue shelf.
	Stored bool

	from string // the old path of a renamed file
}

// A Body opens new content. Each call reads from the beginning.
type Body func() (io.ReadCloser, error)

// Bytes returns a Body of content in memory.
func Bytes(content []byte) Body {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
}

// Put creates or replaces a file. Unless Mode is set, a replaced file keeps its
// permissions and a new file gets 0644.
func Put(path string, content []byte) Change { return Change{Path: path, Body: Bytes(content)} }

// Delete removes a file.
func Delete(path string) Change { return Change{Path: path, Delete: true} }

// Rename moves a file to a path that does not exist. The grant must hold both paths.
func Rename(from, to string) []Change {
	return []Change{{Path: to, from: from, Base: &lockkeeper.Version{}}, Delete(from)}
}

// plan reads the current version of each path, refuses those that differ from their
// base, and lists the directories that are missing.
func (c *commit) plan(ctx context.Context) error {
	var refused []error
	versions := map[string]lockkeeper.Version{}
	for _, it := range c.items {
		found, err := c.g.inspectPath(it.target)
		if isRefusal(err) {
			refused = append(refused, err)
			continue
		}
		if err != nil {
			return err
		}
		old := found.version
		versions[it.target] = old
		it.alter.Old, it.dir = old, found.dir
		switch {
		case it.Base != nil && *it.Base != old:
			refused = append(refused, changedSince(it.target, c.grant.ID, *it.Base, old))
		case it.Base == nil && it.first && old.Exists() && found.changed.After(c.since):
			known, err := c.isKnown(ctx, it.target, old)
			if err != nil {
				return err
			}
			if !known {
				refused = append(refused, changedUnder(it.target, c.grant.ID, found.changed, c.since))
			}
		}
		if it.Body == nil && it.from == "" && !it.Delete && !old.Exists() {
			return &lockkeeper.InputError{Field: "path", Value: it.target, Reason: "no such file, so its mode cannot be changed", Next: "write the file first"}
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

// isKnown reports whether a path holds a version that the gate left there: that of the
// last landing of any grant, or the one before a landing of this grant that was rolled
// back. It is needed because renames, links and touch change a file's times without
// changing its content.
func (c *commit) isKnown(ctx context.Context, path string, now lockkeeper.Version) (bool, error) {
	return store.Read(ctx, c.g.store, func(r store.Reader) (known bool, err error) {
		left, err := r.Landed("", path)
		if l, ok := left[path]; err != nil || ok && l.Version == now {
			return err == nil, err
		}
		mine, err := r.Landings(store.LandingQuery{GrantID: c.grant.ID, Path: path})
		for _, l := range mine {
			for _, a := range l.Changes {
				known = known || a.Path == path && a.Old == now && l.State == lockkeeper.Undone
			}
		}
		return known, err
	})
}

// source sets the origin of an item's new content, and its mode.
func (c *commit) source(it *item, versions map[string]lockkeeper.Version) error {
	it.mode = 0o644
	from := it.target
	if it.from != "" {
		var err error
		if from, err = c.g.resolve(c.checker, it.from); err != nil {
			return err
		}
		if !versions[from].Exists() {
			return &lockkeeper.InputError{Field: "path", Value: it.from, Reason: "no such file to rename", Next: "check its name"}
		}
	}
	if v := versions[from]; v.Exists() {
		it.mode = v.Mode
	}
	if it.Mode != nil {
		it.mode = it.Mode.Perm()
	}
	if !it.Delete && it.mode&0o400 == 0 {
		return &lockkeeper.InputError{Field: "path", Value: it.target, Reason: fmt.Sprintf("mode %04o: its owner could not read it, so the gate could not verify it", it.mode), Next: "use a mode with read permission for the owner"}
	}
	it.open = it.Body
	if it.open == nil {
		it.open = c.g.bodyOf(from)
	}
	return nil
}

// bodyOf returns the content of a file in the tree.
func (g *Gate) bodyOf(path string) Body {
	return func() (io.ReadCloser, error) {
		dir, name, err := g.openParent(path)
		if err != nil {
			return nil, err
		}
		f, err := g.disk.OpenFile(dir, name)
		return f, errors.Join(err, dir.Close())
	}
}

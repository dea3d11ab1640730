package gate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"lockkeeper"
	"lockkeeper/store"
)

// Change is one wanted change of one path. Put, PutFile, Delete, Chmod and
// Rename make them; Base and Mode may be set afterwards.
type Change struct {
	Path   string // any spelling relative to the root
	Body   Body   // the new content; nil leaves the content as it is
	Mode   *fs.FileMode
	Delete bool

	// Base is what the path must hold for the change to land. Left nil, it is
	// what the grant itself landed there last, else what is there when Commit
	// begins.
	Base *lockkeeper.Version

	// Stored says that the caller keeps the content whether the change lands or not.
	// Otherwise the gate puts content that does not land on the rescue shelf.
	Stored bool

	from string // of a renamed file: whose content and mode it gets
}

// Body opens new content, from its beginning, as often as it is called.
type Body func() (io.ReadCloser, error)

// Bytes is a Body of content in memory.
func Bytes(content []byte) Body {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
}

// File is a Body read from a file elsewhere, however large.
func File(path string) Body {
	return func() (io.ReadCloser, error) { return os.Open(path) }
}

// Put creates or replaces a file. A replaced one keeps its permissions, a new
// one gets 0644, unless Mode says otherwise.
func Put(path string, content []byte) Change { return Change{Path: path, Body: Bytes(content)} }

// PutFile is Put with the content of a file elsewhere.
func PutFile(path, source string) Change { return Change{Path: path, Body: File(source)} }

// Delete removes a file.
func Delete(path string) Change { return Change{Path: path, Delete: true} }

// Chmod changes the permissions of a file.
func Chmod(path string, mode fs.FileMode) Change { return Change{Path: path, Mode: &mode} }

// Rename moves a file to a name that is free. Both names must be covered.
func Rename(from, to string) []Change {
	return []Change{{Path: to, from: from, Base: &lockkeeper.Version{}}, Delete(from)}
}

// plan looks at the disk: what each path holds now, whether that is what was
// expected, and which directories are missing.
func (c *commit) plan(ctx context.Context) error {
	var refused []error
	versions := map[string]lockkeeper.Version{}
	for _, it := range c.items {
		found, err := c.g.lookAt(it.target)
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
				refused = append(refused, changedUnder(it.target, c.grant.ID, found.changed, c.since, old))
			}
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

// isKnown reports whether a path holds what the gate itself left there: the last
// landing of any grant, or a landing of this grant that was rolled back. The gate's own
// renames, a link that was made and removed, or a touch change a file's times and not
// its content.
func (c *commit) isKnown(ctx context.Context, path string, now lockkeeper.Version) (known bool, err error) {
	err = c.g.store.View(ctx, func(r store.Reader) error {
		left, err := r.Landed("", path)
		if l, ok := left[path]; err != nil || ok && l.Version == now {
			known = err == nil
			return err
		}
		mine, err := r.Landings(store.LandingQuery{GrantID: c.grant.ID, Path: path})
		for _, l := range mine {
			for _, a := range l.Changes {
				known = known || a.Path == path && a.Old == now && l.State == lockkeeper.Undone
			}
		}
		return err
	})
	return known, err
}

// source decides where an item's new content comes from and which mode it gets.
func (c *commit) source(it *item, versions map[string]lockkeeper.Version) error {
	it.mode = 0o644
	from := it.target
	if it.from != "" {
		var err error
		if from, err = c.g.resolve(c.look, it.from); err != nil {
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
	if !it.Delete && it.mode&0o400 == 0 {
		return &lockkeeper.InputError{Field: "path", Value: it.target, Reason: fmt.Sprintf("mode %04o: its owner could not read it, and nobody could tell what landed", it.mode), Next: "give a mode with read permission"}
	}
	it.open = it.Body
	if it.open == nil {
		it.open = c.g.bodyOf(from)
	}
	return nil
}

// bodyOf is the content of a file of the tree.
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

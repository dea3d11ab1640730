package workspace

import (
	"crypto/sha256"
	"encoding/gob"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/durable"
)

// An entry records what was copied to one name, and the stat of the copy.
type entry struct {
	Mode     fs.FileMode // mode with the type bits
	Size     int64
	Inode    uint64
	Modified int64 // nanoseconds
	Changed  int64
	Sum      digest // the hash of a file
	Link     string // the text of a link
	Young    bool   // a later write may have the same stat
}

// A digest is a hash that gob encodes as one value, which is faster and smaller than an array.
type digest [sha256.Size]byte

func (d digest) MarshalBinary() ([]byte, error) { return d[:], nil }

func (d *digest) UnmarshalBinary(data []byte) error {
	if len(data) != len(d) {
		return fmt.Errorf("a hash has %d bytes instead of %d", len(data), len(d))
	}
	copy(d[:], data)
	return nil
}

func (e *entry) note(l fileStat) {
	e.Mode, e.Size, e.Inode, e.Modified, e.Changed = l.mode, l.size, l.inode, l.modified, l.changed
}

// looksLike reports whether the stat proves that a file is unchanged.
func (e *entry) looksLike(l fileStat) bool {
	return !e.Young && e.Mode == l.mode && e.Size == l.size && e.Inode == l.inode && e.Modified == l.modified && e.Changed == l.changed
}

// holds reports whether two entries have the same content.
func (e *entry) holds(other *entry) bool {
	return e.Mode == other.Mode && e.Size == other.Size && e.Sum == other.Sum && e.Link == other.Link
}

func (e *entry) state() *State { return &State{Mode: e.Mode, Size: e.Size, Link: e.Link} }

// version returns the entry as a version of the gate, which is zero for a link.
func (e *entry) version() lockkeeper.Version {
	switch {
	case e.Mode.IsDir():
		return lockkeeper.Version{Kind: lockkeeper.Dir, Mode: e.Mode.Perm()}
	case e.Mode.IsRegular():
		return lockkeeper.Version{Kind: lockkeeper.File, Mode: e.Mode.Perm(), Sum: e.Sum}
	}
	return lockkeeper.Version{}
}

// A node is an entry and, for a directory, its children.
type node struct {
	entry
	children map[string]*node
}

func newFolder(mode fs.FileMode) *node {
	return &node{entry: entry{Mode: mode}, children: map[string]*node{}}
}

func (n *node) isFolder() bool { return n != nil && n.children != nil }

// find returns the node of a path, or nil if nothing was copied there.
func (n *node) find(path string) *node {
	if path == "." {
		return n
	}
	for name := range strings.SplitSeq(path, "/") {
		if !n.isFolder() {
			return nil
		}
		n = n.children[name]
	}
	return n
}

// set records the node of a path, or removes it if n is nil. Its parents must exist.
func (n *node) set(path string, what *node) {
	dir, name := split(path)
	parent := n.find(dir)
	if what == nil {
		if parent.isFolder() {
			delete(parent.children, name)
		}
		return
	}
	parent.children[name] = what
}

// each visits everything below a node, directories before their content.
func (n *node) each(path string, visit func(path string, n *node)) {
	for _, name := range slices.Sorted(maps.Keys(n.children)) {
		child := n.children[name]
		at := below(path, name)
		visit(at, child)
		child.each(at, visit)
	}
}

// A manifest on disk has a head and the entries.
type (
	head struct {
		Format       int
		Root         string
		Made         time.Time
		Seq          uint64
		Commit       string
		Without      []string
		Repositories []string
		Top          entry
		Entries      int
	}
	line struct {
		Path  string
		Entry entry
	}
)

// manifestFormat must be raised with every change of head or line.
const manifestFormat = 3

const manifestName = "manifest"

// save writes the manifest completely or not at all.
func (w *Workspace) save() error {
	var lines []line
	w.base.each(".", func(path string, n *node) { lines = append(lines, line{path, n.entry}) })
	const temp = durable.TempPrefix + manifestName
	if err := unix.Unlinkat(w.top, temp, 0); err != nil && !isGone(err) {
		return pathError("remove", filepath.Join(w.dir, temp), err)
	}
	fd, err := openAt(w.top, temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)
	if err != nil {
		return pathError("create", filepath.Join(w.dir, temp), err)
	}
	f := os.NewFile(uintptr(fd), filepath.Join(w.dir, temp))
	enc := gob.NewEncoder(f)
	err = enc.Encode(head{Format: manifestFormat, Root: w.root, Made: w.made, Seq: w.seq, Commit: w.commit,
		Without: slices.Sorted(maps.Keys(w.without)), Repositories: slices.Sorted(maps.Keys(w.repositories)), Top: w.base.entry, Entries: len(lines)})
	if err == nil {
		err = enc.Encode(lines)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = pathError("rename", f.Name(), unix.Renameat(w.top, temp, w.top, manifestName))
	}
	return err
}

// openManifest reads the head of a manifest. The caller reads the entries.
func openManifest(top int, dir string) (f *os.File, dec *gob.Decoder, h head, err error) {
	fd, err := openRegular(top, manifestName)
	if err != nil {
		return nil, nil, h, pathError("open", filepath.Join(dir, manifestName), err)
	}
	f = os.NewFile(uintptr(fd), filepath.Join(dir, manifestName))
	dec = gob.NewDecoder(f)
	if err = dec.Decode(&h); err == nil && h.Format != manifestFormat {
		err = fmt.Errorf("format %d is not supported; this program supports %d", h.Format, manifestFormat)
	}
	if err != nil {
		return nil, nil, h, errors.Join(fmt.Errorf("manifest of %s: %w", dir, err), f.Close())
	}
	return f, dec, h, nil
}

// load reads the manifest of an adopted workspace.
func (w *Workspace) load() error {
	f, dec, h, err := openManifest(w.top, w.dir)
	if err != nil {
		return err
	}
	var lines []line
	err = errors.Join(dec.Decode(&lines), f.Close())
	if err == nil && len(lines) != h.Entries {
		err = fmt.Errorf("it has %d entries instead of %d", len(lines), h.Entries)
	}
	if err != nil {
		return fmt.Errorf("manifest of %s: %w", w.dir, err)
	}
	w.root, w.made, w.seq, w.commit, w.without = h.Root, h.Made, h.Seq, h.Commit, areaOf(h.Without)
	for _, path := range h.Repositories {
		w.repositories[path] = true
	}
	w.base = newFolder(h.Top.Mode)
	for _, l := range lines {
		n := &node{entry: l.Entry}
		if l.Entry.Mode.IsDir() {
			n.children = map[string]*node{}
		}
		if p, err := clean(l.Path); err != nil || p != l.Path {
			return fmt.Errorf("manifest of %s: %q is not the path of a copied file", w.dir, l.Path)
		}
		if dir, _ := split(l.Path); !w.base.find(dir).isFolder() {
			return fmt.Errorf("manifest of %s: %q is in no directory", w.dir, l.Path)
		}
		w.base.set(l.Path, n)
	}
	return nil
}

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
	Origin   stamp  // the shared file or link when it was copied
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
	owner    *owner // may change the node; others see it unchanged
}

// An owner is a workspace or a base that changes the copied state. A copy of a tree has no owner and
// changes all its nodes.
type owner struct{ _ byte }

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

// with records the node of a path, or removes it if what is nil, and returns the new top. Its
// parents must exist. Nodes of other owners stay as they are.
func (n *node) with(by *owner, path string, what *node) *node {
	dir, name := split(path)
	if what == nil && !n.find(dir).isFolder() {
		return n
	}
	top := n.ownedBy(by)
	parent := top
	if dir != "." {
		for part := range strings.SplitSeq(dir, "/") {
			child := parent.children[part].ownedBy(by)
			parent.children[part] = child
			parent = child
		}
	}
	if what == nil {
		delete(parent.children, name)
	} else {
		parent.children[name] = what
	}
	return top
}

// ownedBy returns the node, or a copy of it that this owner may change.
func (n *node) ownedBy(by *owner) *node {
	if n.owner == by {
		return n
	}
	return &node{entry: n.entry, children: maps.Clone(n.children), owner: by}
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
		Layers       []string // the layers below the tree, the uppermost first; then only differences from them are listed
	}
	line struct {
		Path  string
		Entry entry
		Gone  bool // the layers have this path, and the tree has not
	}
)

// manifestFormat must be raised with every change of head or line. Programs read oldestFormat and
// later.
const (
	manifestFormat = 4
	oldestFormat   = 3
)

const manifestName = "manifest"

// save writes the manifest completely or not at all.
func (w *Workspace) save() error {
	h := head{Format: manifestFormat, Root: w.root, Made: w.made, Seq: w.seq, Commit: w.commit, Without: slices.Sorted(maps.Keys(w.without)),
		Repositories: slices.Sorted(maps.Keys(w.repositories)), Top: w.base.entry}
	var lines []line
	if w.layered == nil {
		w.base.each(".", func(path string, n *node) { lines = append(lines, line{Path: path, Entry: n.entry}) })
	} else {
		h.Layers = w.layered.dirs
		for _, path := range slices.Sorted(maps.Keys(w.recorded)) {
			l := line{Path: path, Gone: true}
			if n := w.base.find(path); n != nil {
				l = line{Path: path, Entry: n.entry}
			}
			lines = append(lines, l)
		}
	}
	h.Entries = len(lines)
	const temp = durable.TempPrefix + manifestName
	if err := unix.Unlinkat(w.home, temp, 0); err != nil && !isGone(err) {
		return pathError("remove", filepath.Join(w.dir, temp), err)
	}
	fd, err := openAt(w.home, temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)
	if err != nil {
		return pathError("create", filepath.Join(w.dir, temp), err)
	}
	f := os.NewFile(uintptr(fd), filepath.Join(w.dir, temp))
	enc := gob.NewEncoder(f)
	if err = enc.Encode(h); err == nil {
		err = enc.Encode(lines)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = pathError("rename", f.Name(), unix.Renameat(w.home, temp, w.home, manifestName))
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
	if err = dec.Decode(&h); err == nil && (h.Format < oldestFormat || h.Format > manifestFormat) {
		err = fmt.Errorf("format %d is not supported; this program supports %d to %d", h.Format, oldestFormat, manifestFormat)
	}
	if err != nil {
		return nil, nil, h, errors.Join(fmt.Errorf("manifest of %s: %w", dir, err), f.Close())
	}
	return f, dec, h, nil
}

// A manifest is the decoded file of a workspace.
type manifest struct {
	head
	lines []line
}

func readManifest(home int, dir string) (m manifest, err error) {
	f, dec, h, err := openManifest(home, dir)
	if err != nil {
		return m, err
	}
	m.head = h
	err = errors.Join(dec.Decode(&m.lines), f.Close())
	if err == nil && len(m.lines) != h.Entries {
		err = fmt.Errorf("it has %d entries instead of %d", len(m.lines), h.Entries)
	}
	for _, l := range m.lines {
		if p, bad := clean(l.Path); err == nil && (bad != nil || p != l.Path) {
			err = fmt.Errorf("%q is not the path of a copied file", l.Path)
		}
	}
	if err != nil {
		err = fmt.Errorf("manifest of %s: %w", dir, err)
	}
	return m, err
}

// over returns the copied state: that of the layers, which is nil if there are none, with the lines
// of the manifest.
func (m manifest) over(layers *node, by *owner, dir string) (*node, error) {
	top := newFolder(m.Top.Mode)
	if layers != nil {
		top = layers.ownedBy(by)
		top.entry = m.Top
	}
	for _, l := range m.lines {
		if parent, _ := split(l.Path); !l.Gone && !top.find(parent).isFolder() {
			return nil, fmt.Errorf("manifest of %s: %q is in no directory", dir, l.Path)
		}
		if l.Gone {
			top = top.with(by, l.Path, nil)
			continue
		}
		n := &node{entry: l.Entry, owner: by}
		if l.Entry.Mode.IsDir() {
			n.children = map[string]*node{}
			if old := top.find(l.Path); old.isFolder() {
				n.children = maps.Clone(old.children)
			}
		}
		top = top.with(by, l.Path, n)
	}
	return top, nil
}

// load reads the manifest of an adopted workspace, and those of its layers.
func (w *Workspace) load() error {
	m, err := readManifest(w.home, w.dir)
	if err != nil {
		return err
	}
	w.root, w.made, w.seq, w.commit, w.without = m.Root, m.Made, m.Seq, m.Commit, areaOf(m.Without)
	for _, path := range m.Repositories {
		w.repositories[path] = true
	}
	var below *node
	if len(m.Layers) > 0 {
		w.layered, w.owner, w.recorded = &layers{dirs: m.Layers}, &owner{}, map[string]bool{}
		for _, l := range m.lines {
			w.recorded[l.Path] = true
		}
		if below, err = loadLayers(m.Layers); err != nil {
			return err
		}
	}
	w.base, err = m.over(below, w.owner, w.dir)
	return err
}

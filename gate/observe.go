package gate

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/store"
)

// errIrregular says that a path is neither a file nor a directory, or cannot be read.
var errIrregular = errors.New("neither a file nor a directory")

// observe returns the version of a name in a directory; the zero Version if it is missing.
func (g *Gate) observe(dir *os.File, name string) (lockkeeper.Version, error) {
	st, err := g.disk.Lstat(dir, name)
	switch {
	case err != nil:
		return lockkeeper.Version{}, unlessMissing(err)
	case st.Mode.IsDir():
		return g.observeDir(dir, name)
	case !st.Mode.IsRegular():
		return lockkeeper.Version{}, errIrregular
	}
	f, err := g.disk.OpenFile(dir, name)
	switch {
	case errors.Is(err, fs.ErrPermission): // the content of this file is unknown
		return lockkeeper.Version{}, errors.Join(errIrregular, err)
	case err != nil:
		return lockkeeper.Version{}, unlessMissing(err) // the file may have been removed since the first stat
	}
	v, err := g.versionOf(f)
	return v, errors.Join(err, g.disk.Close(f))
}

func (g *Gate) versionOf(f *os.File) (lockkeeper.Version, error) {
	info, err := f.Stat()
	if err != nil {
		return lockkeeper.Version{}, err
	}
	if !info.Mode().IsRegular() {
		return lockkeeper.Version{}, errIrregular
	}
	h := sha256.New()
	if err := g.stream(f, h.Write); err != nil {
		return lockkeeper.Version{}, err
	}
	return fileVersion(info.Mode(), h), nil
}

const streamBuffer = 32 << 10

// stream passes the content of the reader from to the function into. It reuses its buffers: most
// files are small, and allocating a buffer takes longer than reading one.
func (g *Gate) stream(from io.Reader, into func([]byte) (int, error)) error {
	buf, ok := g.buffers.Get().(*[streamBuffer]byte)
	if !ok {
		buf = new([streamBuffer]byte)
	}
	defer g.buffers.Put(buf)
	for {
		n, err := from.Read(buf[:])
		if n > 0 {
			if _, err := into(buf[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func fileVersion(mode fs.FileMode, h hash.Hash) lockkeeper.Version {
	v := lockkeeper.Version{Kind: lockkeeper.File, Mode: mode.Perm()}
	h.Sum(v.Sum[:0])
	return v
}

// observeDir returns the version of a directory, which covers the names, kinds, modes and
// contents of everything in it.
func (g *Gate) observeDir(at *os.File, name string) (v lockkeeper.Version, err error) {
	dir, err := g.disk.OpenDir(at, name)
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, g.disk.Close(dir)) }()
	info, err := dir.Stat()
	if err != nil {
		return v, err
	}
	names, err := g.disk.List(dir)
	if err != nil {
		return v, err
	}
	slices.Sort(names)
	h := sha256.New()
	for _, name := range names {
		in, err := g.observe(dir, name)
		if err != nil {
			return v, fmt.Errorf("%s: %w", name, err)
		}
		fmt.Fprintf(h, "%q %s\n", name, in)
	}
	v.Kind, v.Mode = lockkeeper.Dir, info.Mode().Perm()
	h.Sum(v.Sum[:0])
	return v, nil
}

// syncTree syncs every file and directory in a directory, innermost first.
func (g *Gate) syncTree(at *os.File, name string) (err error) {
	dir, err := g.disk.OpenDir(at, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.disk.Close(dir)) }()
	names, err := g.disk.List(dir)
	if err != nil {
		return err
	}
	err = inParallel(len(names), func(i int) error {
		st, err := g.disk.Lstat(dir, names[i])
		switch {
		case err != nil:
			return err
		case st.Mode.IsDir():
			return g.syncTree(dir, names[i])
		case !st.Mode.IsRegular():
			return irregularEntry(dir, names[i])
		}
		f, err := g.disk.OpenFile(dir, names[i])
		if err != nil {
			return err
		}
		return errors.Join(g.disk.Sync(f), g.disk.Close(f))
	})
	if err != nil {
		return err
	}
	return g.disk.Sync(dir)
}

// irregularEntry refuses the content of a new directory because of one entry.
func irregularEntry(dir *os.File, name string) error {
	return &lockkeeper.InputError{Field: "entry", Value: filepath.Join(dir.Name(), name), Reason: errIrregular.Error(), Next: "keep only files and directories in the new content"}
}

func (g *Gate) openParent(path string) (dir *os.File, name string, err error) {
	parent, name := split(path)
	dir, err = g.disk.OpenDir(g.root, parent)
	return dir, name, err
}

func (g *Gate) observePath(path string) (lockkeeper.Version, error) {
	dir, name, err := g.openParent(path)
	if err != nil {
		return lockkeeper.Version{}, unlessMissing(err)
	}
	v, err := g.observe(dir, name)
	return v, errors.Join(err, g.disk.Close(dir))
}

// isParentOf reports whether an open directory is still the parent of a path. It is not if
// the directory was moved, or replaced by a link.
func (g *Gate) isParentOf(dir *os.File, path string) (bool, error) {
	now, _, err := g.openParent(path)
	switch {
	case isElsewhere(err) || errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	}
	a, errA := dir.Stat()
	b, errB := now.Stat()
	if err := errors.Join(errA, errB, g.disk.Close(now)); err != nil {
		return false, err
	}
	return os.SameFile(a, b), nil
}

// unlessMissing returns nil if err says that a file does not exist, and otherwise err.
func unlessMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// isElsewhere reports whether a path cannot be followed inside the tree, because of a
// link, a mount, a file or a directory without permission.
func isElsewhere(err error) bool {
	return errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EXDEV) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, fs.ErrPermission)
}

// siteFile holds the id of the disk that landings are on. Unlike the host name and the
// path, it does not change.
const siteFile = "site"

// learnSite reads the id of this site, or makes one. The file names the inode of the
// directory it was made in, so a copy of a tree gets an id of its own.
func (g *Gate) learnSite(state *os.File) error {
	self, err := g.disk.Lstat(state, ".")
	if err != nil {
		return err
	}
	mine := itoa(self.Inode)
	id, of, err := g.readSite(state)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		id, err = g.makeSite(state, mine)
	case err == nil && of != mine:
		if err = g.disk.Remove(state, siteFile); err == nil || errors.Is(err, fs.ErrNotExist) {
			id, err = g.makeSite(state, mine)
		}
	}
	if err == nil {
		g.site = id + " " + g.opt.Site
	}
	return err
}

// readSite returns the id of the site, and the inode of the directory that the id belongs to.
func (g *Gate) readSite(state *os.File) (id, of string, err error) {
	f, err := g.disk.OpenFile(state, siteFile)
	if err != nil {
		return "", "", err
	}
	text, err := io.ReadAll(io.LimitReader(f, 64))
	id, of, _ = strings.Cut(strings.TrimSpace(string(text)), " ")
	return id, of, errors.Join(err, f.Close())
}

// makeSite creates the site file, unless another process was faster. If the gate's
// directories were removed, it keeps the id.
func (g *Gate) makeSite(state *os.File, of string) (string, error) {
	id, _, _ := strings.Cut(g.site, " ")
	if id == "" {
		id = newID()
	}
	temp := siteFile + "." + newID()
	f, err := g.disk.Create(state, temp)
	if err != nil {
		return "", err
	}
	err = errors.Join(g.disk.Write(f, []byte(id+" "+of+"\n")), g.disk.Sync(f), g.disk.Close(f))
	if err == nil {
		err = g.disk.Move(state, temp, state, siteFile)
	}
	if err == nil {
		return id, g.disk.Sync(state)
	}
	removed := g.disk.Remove(state, temp)
	if errors.Is(err, fs.ErrExist) && removed == nil {
		id, _, err = g.readSite(state)
		return id, err
	}
	return "", errors.Join(err, removed)
}

// isHere reports whether the files of a landing are in this tree.
func (g *Gate) isHere(l *lockkeeper.Landing) bool {
	here, _, _ := strings.Cut(g.site, " ")
	there, _, _ := strings.Cut(l.Site, " ")
	return here == there
}

// SiteID returns the id of this copy of the tree. No other copy has it.
func (g *Gate) SiteID() string {
	id, _, _ := strings.Cut(g.site, " ")
	return id
}

// siteOf returns the host and root of a landing, for messages.
func siteOf(l *lockkeeper.Landing) string {
	_, name, _ := strings.Cut(l.Site, " ")
	return name
}

// CheckCopy compares files, and all files below directories, with their last landing in
// another copy of the tree. It returns a *lockkeeper.BehindError, joined, for each file that
// differs here. It ignores files whose last landing was here.
func (g *Gate) CheckCopy(ctx context.Context, targets ...lockkeeper.Target) error {
	landed := map[string]*lockkeeper.Landing{}
	var paths []string
	err := g.store.View(ctx, func(r store.Reader) error {
		var err error
		if paths, err = g.foreign(r, targets); err != nil {
			return err
		}
		left, err := r.Landed("", paths...)
		if err != nil {
			return err
		}
		clear(landed)
		for path, l := range left {
			found, err := r.Landings(store.LandingQuery{Seq: l.Seq})
			if err != nil {
				return err
			}
			if len(found) == 1 && !g.isHere(found[0]) {
				landed[path] = found[0]
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	var behind []error
	for _, path := range paths {
		l := landed[path]
		if l == nil {
			continue
		}
		have, err := g.observePath(path)
		if err != nil && !errors.Is(err, errIrregular) && !isElsewhere(err) {
			return err
		}
		if want := leftBy(l, path); err != nil || have != want {
			behind = append(behind, &lockkeeper.BehindError{Path: path, Want: want, Landing: l.Seq, Holder: l.Holder, Site: siteOf(l), At: l.At,
				Fact: fmt.Sprintf("it has %s, the landing has %s", brief(have), brief(want))})
		}
	}
	return errors.Join(behind...)
}

// landingPage is how many landings one query reads at most.
const landingPage = 1_000

// foreign lists the files among targets, and those below directories that a landing in another
// copy changed. It reads each landing of the space only once.
func (g *Gate) foreign(r store.Reader, targets []lockkeeper.Target) (paths []string, err error) {
	var dirs []lockkeeper.Target
	for _, t := range targets {
		switch t.Kind {
		case lockkeeper.File:
			paths = append(paths, t.Path)
		case lockkeeper.Dir:
			dirs = append(dirs, t)
		}
	}
	if dirs == nil {
		return paths, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for more := true; more; {
		page, err := r.Landings(store.LandingQuery{After: g.elsewhere.last, Limit: landingPage})
		if err != nil {
			return nil, err
		}
		for _, l := range page {
			g.elsewhere.last = l.Seq
			if g.isHere(l) {
				continue
			}
			for _, c := range l.Changes {
				g.elsewhere.paths[c.Path] = true
			}
		}
		more = len(page) == landingPage
	}
	for path := range g.elsewhere.paths {
		if slices.ContainsFunc(dirs, func(d lockkeeper.Target) bool { return lockkeeper.IsAncestor(d.Path, path) }) {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths), nil
}

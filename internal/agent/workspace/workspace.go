package workspace

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper"
)

// A Workspace is a private copy of the shared tree.
type Workspace struct {
	dir  string // the workspace's own directory
	root string // the shared tree
	made time.Time

	mu           sync.Mutex
	home         int     // dir, open and locked; -1 if closed
	top          int     // the directory that has the tree, temporary files and what was taken out
	tree         int     // the tree, open
	layered      *layers // what is below the tree; nil if the tree is a copy
	landed       func(ctx context.Context, after uint64) ([]string, uint64, error)
	sums         *Sums
	seq          uint64
	commit       string          // HEAD of the shared repository, if there is one
	base         *node           // the copied state
	owner        *owner          // of the nodes that this workspace recorded; nil for a copy
	recorded     map[string]bool // paths at which base differs from the layers
	without      area            // Options.Without
	repositories map[string]bool
	maxCreated   int // bounds the number of new names that are listed
	oddities     []Oddity
	outside      []string // the result of Outside; nil until the first call
	fault        error    // set if an adopted workspace can only be closed
}

const treeName = "tree"

// Make copies the shared tree into a new workspace. Oddities lists what it could not copy
// exactly. If Make fails, it leaves nothing.
func Make(ctx context.Context, o Options) (*Workspace, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	w, err := create(o, filepath.Join(o.Dir, randomName()))
	if err != nil {
		return nil, fmt.Errorf("make a workspace in %s: %w", o.Dir, err)
	}
	if err := w.fill(ctx, o); err != nil {
		// The workspace is removed even if ctx has ended.
		return nil, errors.Join(fmt.Errorf("make workspace %s: %w", w.dir, err), w.Close(context.WithoutCancel(ctx), false))
	}
	return w, nil
}

// randomName returns the name of a new directory.
func randomName() string {
	var random [6]byte
	rand.Read(random[:]) // never fails
	return hex.EncodeToString(random[:])
}

// create makes and locks the directory of a workspace. It has its name only once it is locked, so
// that no other process takes it for an abandoned one.
func create(o Options, dir string) (_ *Workspace, err error) {
	w := &Workspace{root: o.Root, made: time.Now(), home: -1, top: -1, tree: -1, landed: o.Landed, sums: o.Sums, seq: o.After,
		dir: dir, without: areaOf(o.Without), repositories: map[string]bool{}, maxCreated: maxCreated}
	defer func() {
		if err != nil {
			w.forget()
			err = errors.Join(err, os.RemoveAll(w.dir))
		}
	}()
	if w.home, err = makeLocked(w.dir); err != nil {
		return nil, err
	}
	if err := unix.Mkdirat(w.home, treeName, 0o700); err != nil {
		return nil, pathError("mkdir", w.Dir(), err)
	}
	return w, w.openTree()
}

// openTree opens the tree of a copy.
func (w *Workspace) openTree() (err error) {
	w.top = w.home
	w.tree, err = openFolder(w.home, treeName, false)
	return pathError("open", w.Dir(), err)
}

// fill copies the tree. It repeats this for paths that changed meanwhile.
func (w *Workspace) fill(ctx context.Context, o Options) error {
	if w.landed != nil { // from this call on, landed reports every later landing
		_, last, err := w.landed(ctx, w.seq)
		if err != nil {
			return err
		}
		w.seq = last
	}
	from, err := openOrigin(w.root, w.sums)
	if err != nil {
		return err
	}
	defer from.close()
	own, err := statAt(unix.AT_FDCWD, o.Dir)
	if err != nil {
		return pathError("stat", o.Dir, err)
	}
	c := &copier{origin: from, w: w, avoid: own, linked: map[string]bool{}}
	for _, folder := range o.Linked {
		c.linked[folder] = o.Sealed
	}
	if err := c.run(ctx); err != nil {
		return err
	}
	w.base = c.base
	for _, path := range c.repositories {
		w.repositories[path] = true
	}
	if err := w.copyDoubts(ctx, from); err != nil {
		return err
	}
	if err := w.makeRepositories(ctx, from, w.repositoryPaths()); err != nil {
		return err
	}
	now := time.Now()
	w.base.each(".", func(_ string, n *node) { n.Young = time.Unix(0, n.Changed).Add(grain).After(now) })
	return w.save()
}

// copyDoubts copies again the paths that landed during the copy, and files that may be
// inconsistent, until two copies of a file are equal.
func (w *Workspace) copyDoubts(ctx context.Context, from *origin) error {
	b := newRefresher(ctx, w, from)
	doubts := slices.Compact(slices.Sorted(slices.Values(from.doubts)))
	for range copyTries {
		if err := b.catchUp(); err != nil {
			return err
		}
		if len(doubts) == 0 {
			return nil
		}
		before := map[string]entry{}
		for _, path := range doubts {
			if n := w.base.find(path); n != nil {
				before[path] = n.entry
			}
		}
		if err := b.bring(doubts); err != nil {
			return err
		}
		doubts = slices.DeleteFunc(doubts, func(path string) bool {
			n := w.base.find(path)
			return n == nil || n.Sum == before[path].Sum
		})
	}
	for _, path := range doubts {
		from.report(path, "it kept changing while it was copied")
	}
	w.noteOddities(from)
	return b.catchUp()
}

// noteOddities adds the oddities of the shared tree without duplicates.
func (w *Workspace) noteOddities(from *origin) {
	w.oddities = append(w.oddities, from.oddities...)
	from.oddities = nil
	slices.SortFunc(w.oddities, func(a, b Oddity) int { return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.What, b.What)) })
	w.oddities = slices.Compact(w.oddities)
}

// begin checks that the workspace still exists. Every method calls it first, or beginEdit.
func (w *Workspace) begin() error {
	if w.home < 0 {
		return fmt.Errorf("workspace %s: %w", w.dir, os.ErrClosed)
	}
	if w.fault != nil {
		return &LostError{Dir: w.dir, Reason: w.fault.Error()}
	}
	w.leaveView()
	// An agent may have removed the owner's rights.
	for _, fd := range []int{w.home, w.top, w.tree} {
		if err := openFully(fd); err != nil {
			return pathError("chmod", w.dir, err)
		}
	}
	mine, err := statFD(w.tree)
	if err != nil {
		return err
	}
	tree := filepath.Join(w.topDir(), treeName)
	now, err := statAt(unix.AT_FDCWD, tree)
	switch {
	case isGone(err):
		return &LostError{Dir: w.dir, Reason: "it was removed"}
	case err != nil:
		return pathError("stat", tree, err)
	case now.inode != mine.inode || now.dev != mine.dev:
		return &LostError{Dir: w.dir, Reason: "it was replaced"}
	}
	return nil
}

// forget releases the lock and closes all descriptors.
func (w *Workspace) forget() {
	w.leaveView()
	if w.layered != nil && w.top >= 0 {
		closeFD(w.top)
	}
	if w.home >= 0 {
		unlock(w.home)
		closeFD(w.home)
	}
	if w.tree >= 0 {
		closeFD(w.tree)
	}
	w.home, w.top, w.tree = -1, -1, -1
}

// topDir returns the path of the directory that has the tree, outside of a sandbox.
func (w *Workspace) topDir() string {
	if w.layered != nil {
		return filepath.Join(w.dir, upperName)
	}
	return w.dir
}

// Dir returns the directory in which the agent works. If Overlay returns an overlay, the tree is
// there only in the sandbox.
func (w *Workspace) Dir() string { return filepath.Join(w.dir, treeName) }

// Home returns the directory of the workspace, for Adopt.
func (w *Workspace) Home() string { return w.dir }

// Root returns the shared tree.
func (w *Workspace) Root() string { return w.root }

// Commit returns HEAD of the shared repository at the time of the copy, or "" if there was no
// commit.
func (w *Workspace) Commit() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.commit
}

// Seq returns the last landing that is in the copy.
func (w *Workspace) Seq() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seq
}

// Oddities lists the differences between the copy and the shared tree, by path.
func (w *Workspace) Oddities() []Oddity {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.oddities)
}

// Open opens a file of the workspace for reading. It must be a regular file, and no part of
// its path may be a link.
func (w *Workspace) Open(path string) (*os.File, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.begin(); err != nil {
		return nil, err
	}
	path, err := clean(path)
	if err != nil {
		return nil, err
	}
	dirPath, name := split(path)
	fd := -1
	dir, err := w.openOwn(dirPath)
	if err == nil {
		defer closeFD(dir)
		fd, err = openRegular(dir, name)
		if seen, gone := statAt(dir, name); err != nil && gone == nil && w.layered != nil && seen.isWhiteout() {
			err = unix.ENOENT
		}
	}
	switch {
	case isGone(err) && w.layered != nil:
		return w.openThrough(path)
	case err != nil:
		return nil, pathError("open", path, err)
	}
	return os.NewFile(uintptr(fd), filepath.Join(w.Dir(), path)), nil
}

// A LostError reports that a workspace was removed or replaced.
type LostError struct {
	Dir    string
	Reason string
}

func (e *LostError) Error() string {
	return lockkeeper.JoinNext(fmt.Sprintf("workspace %s is lost: %s", e.Dir, e.Reason), e.NextStep())
}

func (e *LostError) NextStep() string { return "create a new workspace" }

func (e *LostError) Code() lockkeeper.Code { return lockkeeper.CodeFailed }

// An Oddity is a difference between a workspace and the shared tree: a path that was not copied,
// that never stopped changing while it was copied, or a link that leads out of the tree.
type Oddity struct {
	Path string
	What string // description of the difference, for people
}

// Base returns the version that was copied to a path, for a gate.Change. It returns the zero
// version if there was no file.
func (w *Workspace) Base(path string) (lockkeeper.Version, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.begin(); err != nil {
		return lockkeeper.Version{}, err
	}
	p, err := clean(path)
	if err != nil {
		return lockkeeper.Version{}, err
	}
	if was := w.base.find(p); was != nil && was.Mode.IsRegular() {
		return was.version(), nil
	}
	return lockkeeper.Version{}, nil
}

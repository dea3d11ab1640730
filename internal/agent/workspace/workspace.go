//go:build unix

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

// Workspace is a private copy of the shared tree.
type Workspace struct {
	dir  string // its own directory
	root string // the shared tree
	made time.Time

	mu           sync.Mutex
	top          int // dir, open and locked; -1: closed
	tree         int // the copy, open: so that nothing else can be taken for it
	landed       func(ctx context.Context, after uint64) ([]string, uint64, error)
	sums         *Sums
	seq          uint64
	commit       string // HEAD of the shared repository, if it has one
	base         *node  // what was copied
	without      area   // what is not copied
	repositories map[string]bool
	oddities     []Oddity
	outside      []string // what it reads outside of itself; nil: nobody has asked
	fault        error    // why an adopted workspace can only be closed
}

const treeName = "tree"

// Make copies the shared tree into a new workspace. What it could not copy, or
// not as a copy should be, is in Oddities. When it fails, nothing is left.
func Make(ctx context.Context, o Options) (*Workspace, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	w, err := create(o)
	if err != nil {
		return nil, fmt.Errorf("make a workspace in %s: %w", o.Dir, err)
	}
	if err := w.fill(ctx, o); err != nil {
		// Removing goes on when ctx has ended: who gave up wants nothing left.
		return nil, errors.Join(fmt.Errorf("make workspace %s: %w", w.dir, err), w.Close(context.WithoutCancel(ctx), false))
	}
	return w, nil
}

// createTries is how often somebody may be in the way of a new workspace.
const createTries = 10

// create makes the directory of a workspace and locks it. Until it is locked others may
// take it for one whose user died, and look at it or remove it: then another is made.
func create(o Options) (*Workspace, error) {
	for try := 1; ; try++ {
		w, err := o.createOnce()
		var busy *lockkeeper.RefusedError
		if err == nil || try == createTries || !errors.As(err, &busy) && !isGone(err) {
			return w, err
		}
	}
}

func (o Options) createOnce() (_ *Workspace, err error) {
	var random [6]byte
	rand.Read(random[:]) // never fails
	w := &Workspace{root: o.Root, made: time.Now(), top: -1, tree: -1, landed: o.Landed, sums: o.Sums, seq: o.After,
		dir: filepath.Join(o.Dir, hex.EncodeToString(random[:])), without: areaOf(o.Without), repositories: map[string]bool{}}
	if err := os.Mkdir(w.dir, 0o700); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			w.forget()
			err = errors.Join(err, os.RemoveAll(w.dir))
		}
	}()
	if w.top, err = openLocked(w.dir); err != nil {
		return nil, err
	}
	if err := unix.Mkdirat(w.top, treeName, 0o700); err != nil { // as when it was removed before it was locked
		return nil, pathError("mkdir", w.Dir(), err)
	}
	if w.tree, err = openFolder(w.top, treeName, false); err != nil {
		return nil, pathError("open", w.Dir(), err)
	}
	return w, nil
}

// fill copies everything, and once more what changed meanwhile.
func (w *Workspace) fill(ctx context.Context, o Options) error {
	if w.landed != nil { // from here on all that is under way is told of
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
	place, err := lookAt(unix.AT_FDCWD, o.Dir)
	if err != nil {
		return pathError("stat", o.Dir, err)
	}
	c := &copier{origin: from, w: w, avoid: place, linked: map[string]bool{}}
	for _, folder := range o.Linked {
		c.linked[folder] = o.Sealed
	}
	if err := c.run(ctx); err != nil {
		return err
	}
	w.base, w.oddities = c.base, withOddities(nil, from)
	for _, path := range c.repositories {
		w.repositories[path] = true
	}
	if err := w.settle(ctx, from); err != nil {
		return err
	}
	if err := w.makeRepositories(ctx, from); err != nil {
		return err
	}
	now := time.Now()
	w.base.each(".", func(_ string, n *node) { n.Young = time.Unix(0, n.Changed).Add(grain).After(now) })
	return w.save()
}

// settle copies again what was landed while it was copied, and what may be half of
// something: until it is twice the same.
func (w *Workspace) settle(ctx context.Context, from *origin) error {
	b := newBringing(ctx, w, from)
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
		from.report(path, Torn, "it changed all the while it was copied")
	}
	w.oddities = withOddities(w.oddities, from)
	return b.catchUp()
}

// withOddities adds what was found odd in the shared tree, once.
func withOddities(list []Oddity, from *origin) []Oddity {
	list = append(list, from.oddities...)
	from.oddities = nil
	slices.SortFunc(list, func(a, b Oddity) int { return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Kind, b.Kind)) })
	return slices.CompactFunc(list, func(a, b Oddity) bool { return a.Path == b.Path && a.Kind == b.Kind })
}

// begin is where every use of a workspace begins: it must be there as it was made.
func (w *Workspace) begin() error {
	if w.top < 0 {
		return fmt.Errorf("workspace %s: %w", w.dir, os.ErrClosed)
	}
	if w.fault != nil {
		return &LostError{Dir: w.dir, Reason: w.fault.Error()}
	}
	// An agent may have taken our rights to both.
	for _, fd := range []int{w.top, w.tree} {
		if err := openFully(fd); err != nil {
			return pathError("chmod", w.dir, err)
		}
	}
	mine, err := lookFD(w.tree)
	if err != nil {
		return err
	}
	now, err := lookAt(unix.AT_FDCWD, w.Dir())
	switch {
	case isGone(err):
		return &LostError{Dir: w.dir, Reason: "somebody removed it"}
	case err != nil:
		return pathError("stat", w.Dir(), err)
	case now.inode != mine.inode || now.dev != mine.dev:
		return &LostError{Dir: w.dir, Reason: "somebody put something else in its place"}
	}
	return nil
}

// forget lets go of the lock and of everything open.
func (w *Workspace) forget() {
	if w.top >= 0 {
		unlock(w.top)
		closeFD(w.top)
	}
	if w.tree >= 0 {
		closeFD(w.tree)
	}
	w.top, w.tree = -1, -1
}

// Dir is the directory in which the agent works.
func (w *Workspace) Dir() string { return filepath.Join(w.dir, treeName) }

// Home is the workspace's own directory, with which Adopt finds it again.
func (w *Workspace) Home() string { return w.dir }

// Root is the shared tree of which it is a copy.
func (w *Workspace) Root() string { return w.root }

// Made is when it was made.
func (w *Workspace) Made() time.Time { return w.made }

// Commit is where HEAD of the shared repository was when the copy was made; empty: there is
// none.
func (w *Workspace) Commit() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.commit
}

// Seq is the landing up to which the copy is current.
func (w *Workspace) Seq() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seq
}

// Oddities are what the copy is not just like the shared tree in, by path.
func (w *Workspace) Oddities() []Oddity {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.oddities)
}

// Open opens a file of the workspace to read it, to land it or to keep it. It must
// be a file, and no part of its path may be a link.
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
	dir, err := w.openOwn(dirPath)
	if err != nil {
		return nil, pathError("open", path, err)
	}
	defer closeFD(dir)
	fd, err := openRegular(dir, name)
	if err != nil {
		return nil, pathError("open", path, err)
	}
	return os.NewFile(uintptr(fd), filepath.Join(w.Dir(), path)), nil
}

// LostError says that a workspace is not there any more as it was made.
type LostError struct {
	Dir    string
	Reason string
}

func (e *LostError) Error() string {
	return lockkeeper.JoinNext(fmt.Sprintf("workspace %s is lost: %s", e.Dir, e.Reason), e.NextStep())
}

// NextStep implements lockkeeper.NextStep.
func (e *LostError) NextStep() string { return "create a new workspace" }

// Code implements lockkeeper.CodeOf.
func (e *LostError) Code() lockkeeper.Code { return lockkeeper.CodeFailed }

package workspace

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/internal/machine/overlay"
)

// A Base is a copy of the shared tree below many workspaces. It is copied once. After that each
// landing, and each change that a person made, is a layer on it. A workspace is a mount of the
// layers with an upper directory of its own, so its cost depends on what changes and not on the
// size of the tree.
//
//	Dir/
//	  base-<id>/          0700; the process that adds layers has a flock on it
//	    0/                the copy, like a workspace without an agent
//	    1/ 2/ …           layers; each like a workspace on the layers below it
//
// Nothing changes a layer once a workspace is on it. A layer that was folded is removed when no
// workspace is on it. All others are removed together: by Close, unless they are kept for the next
// process, or, if a kept workspace is on one, by a later NewBase or Close in the same directory.
type Base struct {
	o    Options
	dir  string
	lock int  // dir, open and locked; -1 if closed
	made bool // by this process

	mu      sync.Mutex
	last    int           // the number of the last layer
	copied  *snapshot     // the state of the first layer; nil before the copy
	now     *snapshot     // the newest state
	scanned time.Time     // when the last scan of the shared tree began
	took    time.Duration // what it took
	names   int           // in the first layer

	users  map[string]int // how many workspaces are on each layer
	folded []string       // layers that newer workspaces do not need
}

// A snapshot is the state of the shared tree that a stack of layers has. It never changes.
type snapshot struct {
	dirs         []string // the layers, the uppermost first
	nodes        *node
	seq          uint64          // the last landing that is in it
	commit       string          // HEAD of the shared repository
	repositories map[string]bool // directories with a private repository
	shared       map[string]sharedRepository
	outside      []string // as Workspace.Outside
	oddities     []Oddity
	recorded     map[string]bool  // paths that are in a layer above the copy
	refused      map[string]stamp // paths of the shared tree that cannot be copied
}

const baseName = "base-"

// ErrNoOverlays reports that overlays do not work in the directory of workspaces.
var ErrNoOverlays = errors.New("workspaces are copies here")

// NewBase opens a base: one that an earlier process kept, or a new one. Prepare or the first Make copies
// it or brings it up to date.
func NewBase(ctx context.Context, o Options) (_ *Base, err error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	b := &Base{o: o, dir: filepath.Join(o.Dir, baseName+randomName()), lock: -1, users: map[string]int{}}
	if err := b.adopt(); err != nil {
		return nil, err
	}
	if err := removeBases(ctx, o.Dir, ""); err != nil {
		return nil, err
	}
	if b.lock < 0 {
		b.made = true
		if b.lock, err = makeLocked(b.dir); err != nil {
			return nil, fmt.Errorf("make a base in %s: %w", o.Dir, err)
		}
	}
	if err := overlay.Probe(ctx, b.dir); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrNoOverlays, err), b.Close(context.WithoutCancel(ctx)))
	}
	return b, nil
}

// Discard closes the base and removes it, unless an earlier process kept it.
func (b *Base) Discard(ctx context.Context) error {
	if b.made {
		b.o.Keep = false
	}
	return b.Close(ctx)
}

// Close removes the base, unless it is kept for the next process or a workspace that was kept is on
// it.
func (b *Base) Close(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lock < 0 {
		return nil
	}
	stays := ""
	keep, err := b.mayKeep()
	if keep {
		stays = filepath.Base(b.dir)
	}
	unlock(b.lock)
	closeFD(b.lock)
	b.lock = -1
	return errors.Join(err, removeBases(ctx, b.o.Dir, stays))
}

// Prepare makes the base, or brings it up to date.
func (b *Base) Prepare(ctx context.Context) error {
	s, err := b.current(ctx, nil)
	if err == nil {
		b.leave(s)
	}
	return err
}

// Make makes a workspace on the base. All landings are in it, and so are the changes that people
// made at the paths in fresh. Other changes of people are in it if a scan has found them: a scan
// comes before every workspace if the tree is small, and else takes a twentieth of the time at most.
func (b *Base) Make(ctx context.Context, fresh []string) (*Workspace, error) {
	s, err := b.current(ctx, fresh)
	if err != nil {
		return nil, fmt.Errorf("bring the base of workspaces up to date: %w", err)
	}
	w, err := createOn(s, b.o, filepath.Join(b.o.Dir, randomName()))
	if err != nil {
		b.leave(s)
		return nil, fmt.Errorf("make a workspace in %s: %w", b.o.Dir, err)
	}
	w.layered.leave = func() { b.leave(s) }
	if err := w.save(); err != nil {
		return nil, errors.Join(err, w.Close(context.WithoutCancel(ctx), false))
	}
	return w, nil
}

// createOn makes a workspace on layers.
func createOn(s *snapshot, o Options, dir string) (_ *Workspace, err error) {
	w := &Workspace{root: o.Root, made: time.Now(), home: -1, top: -1, tree: -1, landed: o.Landed, sums: o.Sums, seq: s.seq, dir: dir,
		without: areaOf(o.Without), repositories: s.repositories, maxCreated: maxCreated, base: s.nodes, owner: &owner{}, recorded: map[string]bool{},
		layered: &layers{dirs: s.dirs}, commit: s.commit, outside: slices.Clip(s.outside), oddities: slices.Clip(s.oddities)}
	defer func() {
		if err != nil {
			w.forget()
			err = errors.Join(err, os.RemoveAll(w.dir))
		}
	}()
	if w.home, err = makeLocked(w.dir); err != nil {
		return nil, err
	}
	if err := unix.Mkdirat(w.home, treeName, 0o700); err != nil { // the place of the mount
		return nil, pathError("mkdir", w.Dir(), err)
	}
	return w, w.makeUpper()
}

// current returns the newest state, after it is brought up to date. The caller must leave it.
func (b *Base) current(ctx context.Context, fresh []string) (*snapshot, error) {
	asked := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lock < 0 {
		return nil, os.ErrClosed
	}
	act := b.copy
	if b.now != nil {
		act = func(ctx context.Context) error { return b.advance(ctx, fresh, asked) }
	}
	if err := act(ctx); err != nil {
		return nil, err
	}
	for _, dir := range b.now.dirs {
		b.users[dir]++
	}
	return b.now, nil
}

// leave notes that a workspace no longer needs its layers.
func (b *Base) leave(s *snapshot) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, dir := range s.dirs {
		b.users[dir]--
	}
}

// removeFolded removes folded layers without workspaces.
func (b *Base) removeFolded(ctx context.Context) (err error) {
	b.folded = slices.DeleteFunc(b.folded, func(dir string) bool {
		if b.users[dir] > 0 || err != nil {
			return false
		}
		err = Remove(ctx, filepath.Dir(dir))
		return err == nil
	})
	return err
}

// copy makes the first layer.
func (b *Base) copy(ctx context.Context) error {
	start := time.Now()
	watched := watchRepository(ctx, b.o.Root) // before the copy, so that no later change is missed
	w, err := create(b.o, filepath.Join(b.dir, "0"))
	if err != nil {
		return err
	}
	if err := w.fill(ctx, b.o); err != nil {
		if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
			err = lockkeeper.WithNext(fmt.Errorf("too little room for a copy of %s: %w", b.o.Root, err),
				"free some space on the disk of "+b.o.Dir+", or set XDG_STATE_HOME to a directory on another disk")
		}
		return errors.Join(err, w.Close(context.WithoutCancel(ctx), false))
	}
	s := &snapshot{dirs: []string{w.dir}, nodes: w.base, seq: w.seq, commit: w.commit, repositories: w.repositories, oddities: w.oddities,
		shared: map[string]sharedRepository{}, recorded: map[string]bool{}, refused: map[string]stamp{}}
	if s.outside, err = w.Outside(ctx); err == nil {
		for path := range s.repositories {
			s.shared[path] = sharedRepository{} // copied again with the next layer, because it may have changed
			if path == "." {
				s.shared[path] = watched
			}
		}
	}
	// The layer is removed with the base.
	if err = errors.Join(err, w.Close(context.WithoutCancel(ctx), err == nil)); err == nil {
		b.copied, b.now, b.scanned = s, s, start // how long a scan takes is not known yet
		s.nodes.each(".", func(string, *node) { b.names++ })
		err = b.note()
	}
	return err
}

const (
	fewNames   = 2_000 // a tree with no more names is scanned before every workspace
	scanShare  = 20    // scans of larger trees take at most this fraction of the time
	mostLayers = 100   // the kernel permits 500
)

// advance adds a layer if the shared tree has changed.
func (b *Base) advance(ctx context.Context, fresh []string, asked time.Time) (err error) {
	scan := b.scanned.Before(asked) && (b.names <= fewNames || time.Since(b.scanned) > scanShare*b.took)
	if scan {
		fresh = []string{"."}
	}
	from, err := openOrigin(b.o.Root, b.o.Sums)
	if err != nil {
		return err
	}
	defer from.close()
	start := time.Now()
	found, err := b.now.differences(ctx, b.o, from, fresh)
	if err != nil {
		return err
	}
	if took := time.Since(start); scan {
		defer func() {
			if err == nil { // else the next caller must find the changes again
				b.scanned, b.took = start, took
			}
		}()
	}
	now := *b.now
	now.nodes = found.restamped()
	b.now = &now
	var landed []string
	if b.o.Landed != nil {
		if landed, _, err = b.o.Landed(ctx, now.seq); err != nil {
			return err
		}
	}
	moved := now.movedRepositories(ctx, b.o.Root)
	switch {
	case len(found.paths) == 0 && len(landed) == 0 && len(moved) == 0:
		return nil
	case len(now.dirs) < mostLayers:
		return b.addLayer(ctx, from, &now, found.paths, moved)
	}
	// One layer on the copy replaces all others.
	all := slices.AppendSeq(found.paths, maps.Keys(now.recorded))
	if err := b.addLayer(ctx, from, b.copied, all, b.copied.movedRepositories(ctx, b.o.Root)); err != nil {
		return err
	}
	b.folded = append(b.folded, now.dirs[:len(now.dirs)-1]...)
	return b.removeFolded(ctx)
}

// addLayer makes a layer: a workspace that only catches up.
func (b *Base) addLayer(ctx context.Context, from *origin, below *snapshot, paths, moved []string) (err error) {
	b.last++
	w, err := createOn(below, b.o, filepath.Join(b.dir, strconv.Itoa(b.last)))
	if err != nil {
		return err
	}
	keep := false // a layer that is kept is removed with the base
	defer func() { err = errors.Join(err, w.Close(context.WithoutCancel(ctx), keep)) }()
	lost := lostRepositories(b.o.Root, moved)
	if err := w.dropRepositories(ctx, lost); err != nil { // before their directories, which may be gone too
		return err
	}
	if err := newRefresher(ctx, w, from).bring(paths); err != nil {
		return err
	}
	if err := w.copyDoubts(ctx, from); err != nil {
		return err
	}
	n := *below
	n.repositories = w.repositories
	n.shared, n.refused = maps.Clone(below.shared), maps.Clone(b.now.refused)
	for _, path := range lost {
		delete(n.shared, path)
	}
	changed := len(moved) > 0
	moved = slices.DeleteFunc(slices.Clone(moved), func(path string) bool { return slices.Contains(lost, path) })
	for _, path := range moved {
		n.shared[path] = watchRepository(ctx, filepath.Join(b.o.Root, path)) // before the copy, so that no later change is missed
		if err := w.uncover(ctx, path); err != nil {
			return err
		}
		if path == "." {
			w.commit = ""
		}
	}
	w.leaveView()
	if err := w.makeRepositories(ctx, from, moved); err != nil {
		return err
	}
	if err := Remove(ctx, filepath.Join(w.dir, repositoriesName)); err != nil { // the tree has them
		return err
	}
	n.nodes, n.seq, n.commit, n.oddities = w.base, w.seq, w.commit, w.oddities
	if err := n.refuse(from, paths); err != nil {
		return err
	}
	// A layer without changes is of no use, unless it replaces all others.
	if keep = below != b.now || len(w.recorded) > 0 || changed; keep {
		if err := w.save(); err != nil {
			return err
		}
		n.dirs = append([]string{w.topDir()}, below.dirs...)
		n.recorded = maps.Clone(b.now.recorded)
		maps.Copy(n.recorded, w.recorded)
	}
	b.now = &n
	return b.note()
}

// loadLayers returns the state of a stack of layers from their manifests.
func loadLayers(dirs []string) (nodes *node, err error) {
	by := &owner{}
	for _, dir := range slices.Backward(dirs) {
		dir = homeOfLayer(dir)
		m, err := readManifestOf(dir)
		if err != nil {
			return nil, err
		}
		if nodes, err = m.over(nodes, by, dir); err != nil {
			return nil, err
		}
	}
	return nodes, nil
}

func readManifestOf(dir string) (manifest, error) {
	home, err := openAt(unix.AT_FDCWD, dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return manifest{}, pathError("open", dir, err)
	}
	defer closeFD(home)
	return readManifest(home, dir)
}

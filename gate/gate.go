package gate

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"lockkeeper"
	"lockkeeper/durable"
	"lockkeeper/internal/project/protect"
	"lockkeeper/lock"
	"lockkeeper/rescue"
	"lockkeeper/store"
	"lockkeeper/tree"
)

// Options configures a Gate. The zero value is ready to use.
type Options struct {
	// Allowed lists the directories, or single files, that may be written. "."
	// allows everything. Default: DefaultAllowed.
	Allowed []string
	// Protected lists paths that the gate never writes, even if they are allowed.
	// Default: the files of git and of Lockkeeper.
	Protected *protect.List
	// GrantOptional permits commits without a grant, which are checked against the
	// allowlist alone, as tools without a lock manager do.
	GrantOptional bool
	// Keep is how long the gate keeps originals, for undo, and refused content.
	// Default: 14 days.
	Keep time.Duration
	// Limits bounds how much refused content is kept.
	Limits rescue.Limits
	// Site names this host and root in messages. Default: host:root.
	Site string
	// Actor is recorded as the author of a commit without a grant.
	Actor lockkeeper.Actor
	// Disk replaces the file system operations in tests.
	Disk durable.Disk
}

// DefaultAllowed returns the allowlist of a project that configures none.
func DefaultAllowed() []string {
	return []string{"app/controllers", "app/views", "app/models", "app/services", "test/"}
}

// stateDir is Lockkeeper's own directory in the root. The other names are the gate's directories
// inside stateDir.
const (
	stateDir    = ".lockkeeper"
	stagesDir   = "stage"
	recoversDir = "recover"
	keptDir     = "kept"
	shelfDir    = "rescue"
)

// A Gate lands changes in one tree.
type Gate struct {
	paths *tree.Root
	store store.Store
	locks *lock.Manager
	opt   Options
	disk  durable.Disk
	shelf *rescue.Shelf
	site  string // id and name of the disk

	root   *os.File
	stages *os.File // one directory for each landing in progress
	recovs *os.File // one directory for each recovery in progress
	kept   *os.File // one directory for each day, with one for each landing in it

	buffers sync.Pool

	mu      sync.Mutex
	done    map[string][]store.TakenLanding // by grant: landings that are in the tree and not yet marked committed
	commits map[string]*inFlight
	spares  []*stage
	// elsewhere has the paths that landings in other copies changed, up to the landing last.
	elsewhere struct {
		last  uint64
		paths map[string]bool
	}
}

// Open opens the gate of a tree. The caller closes root, st and locks, after the gate.
func Open(root *tree.Root, st store.Store, locks *lock.Manager, opt Options) (_ *Gate, err error) {
	opt = opt.complete(root)
	if opt.Site == "" {
		host, err := os.Hostname()
		if err != nil {
			return nil, err
		}
		opt.Site = host + ":" + root.Dir()
	}
	g := &Gate{paths: root, store: st, locks: locks, opt: opt, disk: opt.Disk,
		done: map[string][]store.TakenLanding{}, commits: map[string]*inFlight{}}
	g.shelf = rescue.Open(filepath.Join(root.Dir(), stateDir, shelfDir), opt.Limits).WithBases(g.Original)
	g.elsewhere.paths = map[string]bool{}
	if err := g.openDirs(); err != nil {
		return nil, errors.Join(err, g.closeDirs())
	}
	return g, nil
}

// complete sets the defaults.
func (o Options) complete(root *tree.Root) Options {
	if o.Allowed == nil {
		o.Allowed = DefaultAllowed()
	}
	if o.Keep <= 0 {
		o.Keep = 14 * 24 * time.Hour
	}
	if o.Disk == nil {
		o.Disk = durable.OSDisk{}
	}
	if o.Actor.Name == "" {
		o.Actor = lockkeeper.Actor{Name: "unknown", Kind: lockkeeper.ActorSystem}
	}
	if o.Protected == nil {
		o.Protected = protect.New(protect.Options{Root: root.Dir()})
	}
	o.Allowed = cleaned(o.Allowed)
	return o
}

func cleaned(paths []string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = filepath.ToSlash(filepath.Clean(p))
	}
	return out
}

func (g *Gate) openDirs() (err error) {
	problem := func(err error) error {
		return &lockkeeper.StoreError{Store: filepath.Join(g.paths.Dir(), stateDir), Reason: "cannot open the gate's directories", Err: err,
			Next: "make sure that it is a writable directory on the same disk as the root"}
	}
	if g.root, err = g.paths.Handle(); err != nil {
		return problem(err)
	}
	state, err := g.disk.OpenDir(g.root, stateDir)
	if err != nil {
		return problem(err)
	}
	defer state.Close()
	if err := g.learnSite(state); err != nil {
		return problem(err)
	}
	for name, dir := range map[string]**os.File{stagesDir: &g.stages, recoversDir: &g.recovs, keptDir: &g.kept} {
		if *dir, err = g.subdir(state, name); err != nil {
			return problem(err)
		}
	}
	return nil
}

// reopen returns a copy of the gate whose directories exist. Recovery needs one if another
// program removed them.
func (g *Gate) reopen() (*Gate, error) {
	state, err := g.subdir(g.root, stateDir)
	if err != nil {
		return nil, err
	}
	fresh := &Gate{paths: g.paths, store: g.store, locks: g.locks, opt: g.opt, disk: g.disk, shelf: g.shelf, site: g.site}
	if err := errors.Join(state.Close(), fresh.openDirs()); err != nil {
		return nil, errors.Join(err, fresh.closeDirs())
	}
	return fresh, nil
}

// isRemoved reports whether another program removed an open directory.
func (g *Gate) isRemoved(dir *os.File) (bool, error) {
	st, err := g.disk.Lstat(dir, ".")
	return err == nil && st.Links == 0, err
}

// subdir opens a directory and creates it if it is missing.
func (g *Gate) subdir(at *os.File, name string) (*os.File, error) {
	dir, err := g.disk.OpenDir(at, name)
	if !errors.Is(err, fs.ErrNotExist) {
		return dir, err
	}
	if err := g.disk.Mkdir(at, name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return g.disk.OpenDir(at, name)
}

func (g *Gate) closeDirs() error {
	var errs []error
	for _, f := range []*os.File{g.root, g.stages, g.recovs, g.kept} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

// Close marks completed landings as committed, and closes the gate's directories.
func (g *Gate) Close(ctx context.Context) error {
	g.mu.Lock()
	done := g.done
	g.done = map[string][]store.TakenLanding{}
	g.mu.Unlock()
	var errs []error
	for grant, ended := range done {
		errs = append(errs, g.markCommitted(ctx, grant, ended...))
	}
	return errors.Join(append(errs, g.dropSpares(), g.closeDirs())...)
}

// Rescue returns the shelf that keeps refused and displaced content.
func (g *Gate) Rescue() *rescue.Shelf { return g.shelf }

// Landing returns the landing with a number.
func (g *Gate) Landing(ctx context.Context, seq uint64) (*lockkeeper.Landing, error) {
	found, err := g.landings(ctx, store.LandingQuery{Seq: seq})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, &lockkeeper.InputError{Field: "landing", Value: itoa(seq), Reason: "no landing has this number, or its record was deleted",
			Next: "lockkeeper audit --kind landed"}
	}
	return found[0], nil
}

func (g *Gate) landings(ctx context.Context, q store.LandingQuery) ([]*lockkeeper.Landing, error) {
	return store.Read(ctx, g.store, func(r store.Reader) ([]*lockkeeper.Landing, error) { return r.Landings(q) })
}

// takeDone removes and returns the landings of a grant that are not yet marked committed.
func (g *Gate) takeDone(grantID string) []store.TakenLanding {
	g.mu.Lock()
	defer g.mu.Unlock()
	done := g.done[grantID]
	delete(g.done, grantID)
	return done
}

func (g *Gate) putDone(grantID string, done ...store.TakenLanding) {
	if len(done) == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.done[grantID] = append(g.done[grantID], done...)
}

func split(path string) (dir, name string) {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i], path[i+1:]
	}
	return lockkeeper.Root, path
}

func unique(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

// inFlight counts the commits of this process under one grant that are about to be
// decided, or are decided and not complete.
type inFlight struct {
	commits int
	landed  chan struct{} // closed when the count returns to 0
}

// beginCommit counts a commit until the returned function is called.
func (g *Gate) beginCommit(grantID string) (end func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f := g.commits[grantID]
	if f == nil {
		f = &inFlight{landed: make(chan struct{})}
		g.commits[grantID] = f
	}
	f.commits++
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if f.commits--; f.commits == 0 {
			delete(g.commits, grantID)
			close(f.landed)
		}
	}
}

func (g *Gate) isCommitting(grantID string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.commits[grantID] != nil
}

// waitForCommits waits for the commits of this process under a grant.
func (g *Gate) waitForCommits(ctx context.Context, grantID string) error {
	g.mu.Lock()
	f := g.commits[grantID]
	g.mu.Unlock()
	if f == nil {
		return nil
	}
	select {
	case <-f.landed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

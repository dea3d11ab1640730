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

// Options of a Gate; the zero value is ready to use.
type Options struct {
	// Allowed lists the directories, or single files, that may be written. "."
	// allows everything. Default: DefaultAllowed.
	Allowed []string
	// Protected lists what nobody writes through the gate, whatever is allowed.
	// Default: what belongs to git, and Lockkeeper's own files.
	Protected *protect.List
	// GrantOptional restores the rule of tools without a lock manager: a commit
	// without a grant is held against the allowlist alone.
	GrantOptional bool
	// Keep is how long originals, for undo, and refused content are kept. Default
	// 14 days.
	Keep time.Duration
	// Limits bound how much refused content is kept.
	Limits rescue.Limits
	// Site names, for people, the disk that landings are on: this host and this
	// root.
	Site string
	// Actor is who asks where no grant says it.
	Actor lockkeeper.Actor
	// Disk replaces the operating system's operations, in tests.
	Disk durable.Disk
}

// DefaultAllowed is the allowlist of somebody who set none.
func DefaultAllowed() []string {
	return []string{"app/controllers", "app/views", "app/models", "app/services", "test/"}
}

// stateDir is where Lockkeeper keeps its own files; in it are the gate's.
const (
	stateDir    = ".lockkeeper"
	stagesDir   = "stage"
	recoversDir = "recover"
	keptDir     = "kept"
	shelfDir    = "rescue"
)

// Gate lands changes in one tree.
type Gate struct {
	paths *tree.Root
	store store.Store
	locks *lock.Manager
	opt   Options
	disk  durable.Disk
	shelf *rescue.Shelf
	site  string // id of the disk, and its name

	root   *os.File
	stages *os.File // a directory for every landing on its way
	recovs *os.File // a directory for every recovery on its way
	kept   *os.File // a directory for every day, in it one for every landing

	buffers sync.Pool

	mu      sync.Mutex
	done    map[string][]store.Ending // by grant: landings that are done and not yet marked
	commits map[string]*inFlight
	spares  []*stage
}

// Open opens the gate of a tree whose locks are kept by locks in store. All three
// stay the caller's, to be closed after the gate.
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
		shelf: rescue.Open(filepath.Join(root.Dir(), stateDir, shelfDir), opt.Limits),
		done:  map[string][]store.Ending{}, commits: map[string]*inFlight{}}
	if err := g.openDirs(); err != nil {
		return nil, errors.Join(err, g.closeDirs())
	}
	return g, nil
}

// complete fills in what was left out.
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
		return &lockkeeper.StoreError{Store: filepath.Join(g.paths.Dir(), stateDir), Reason: "the gate's own directories cannot be used", Err: err,
			Next: "check that it is a directory of the root's own disk that you may write"}
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

// reopen returns this gate with its own directories as they are by now, made again where
// somebody removed them, to end what was decided.
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

// isRemoved reports whether somebody removed a directory of the gate's own.
func (g *Gate) isRemoved(dir *os.File) (bool, error) {
	st, err := g.disk.Lstat(dir, ".")
	return err == nil && st.Links == 0, err
}

// subdir opens a directory, and makes it when it is missing.
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

// Close marks what is done, and gives back what Open took.
func (g *Gate) Close(ctx context.Context) error {
	g.mu.Lock()
	done := g.done
	g.done = map[string][]store.Ending{}
	g.mu.Unlock()
	var errs []error
	for grant, ended := range done {
		errs = append(errs, g.markCommitted(ctx, grant, ended...))
	}
	return errors.Join(append(errs, g.dropSpares(), g.closeDirs())...)
}

// Rescue is the shelf on which refused and displaced content is kept.
func (g *Gate) Rescue() *rescue.Shelf { return g.shelf }

// Landing finds a landing by its number.
func (g *Gate) Landing(ctx context.Context, seq uint64) (*lockkeeper.Landing, error) {
	found, err := g.landings(ctx, store.LandingQuery{Seq: seq})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, &lockkeeper.InputError{Field: "landing", Value: itoa(seq), Reason: "there is none with this number, or it is forgotten by now",
			Next: "lockkeeper audit --kind landed lists them"}
	}
	return found[0], nil
}

func (g *Gate) landings(ctx context.Context, q store.LandingQuery) (found []*lockkeeper.Landing, err error) {
	err = g.store.View(ctx, func(r store.Reader) error {
		found, err = r.Landings(q)
		return err
	})
	return found, err
}

// takeDone hands out the landings of a grant that are done and not yet marked.
func (g *Gate) takeDone(grantID string) []store.Ending {
	g.mu.Lock()
	defer g.mu.Unlock()
	done := g.done[grantID]
	delete(g.done, grantID)
	return done
}

func (g *Gate) putDone(grantID string, done ...store.Ending) {
	if len(done) == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.done[grantID] = append(g.done[grantID], done...)
}

// split is the directory of a path and the name in it.
func split(path string) (dir, name string) {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i], path[i+1:]
	}
	return lockkeeper.Root, path
}

// unique sorts and drops repeats.
func unique(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

// inFlight counts the commits under one grant in this process that are about to be
// decided or decided and not done.
type inFlight struct {
	commits int
	landed  chan struct{} // closed when there are none
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

package project

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/durable"
	"lockkeeper/internal/machine/disk"
	"lockkeeper/internal/machine/filelock"
	"lockkeeper/internal/project/config"
	"lockkeeper/internal/project/protect"
)

const (
	DirName    = protect.OwnDir // directory in the root with the marker, the database, and the files of the gate
	markerName = "space.json"
)

// A marker says which space a root belongs to.
type marker struct {
	Space     string    `json:"space"`
	CreatedAt time.Time `json:"created_at"`
}

func markerPath(root string) string { return filepath.Join(root, DirName, markerName) }

// readMarker returns the marker of a root, or nil if there is none.
func readMarker(root string) (*marker, error) {
	path := markerPath(root)
	m, err := loadMarker(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err == nil && !isUUID(m.Space):
		err = errors.New("it names no space")
	}
	if closed := closedMarker(path, err); closed != nil {
		return nil, closed
	}
	if err != nil {
		return nil, &lockkeeper.StoreError{Store: path, Reason: "the marker of this root cannot be read", Err: err,
			Next: "restore the file; the space's id is also in the file that `lockkeeper init` names"}
	}
	return &m, nil
}

// loadMarker reads a marker and refuses files that init never makes. A cloned codebase may contain
// a link that leads out of it, or a file that fills the memory.
func loadMarker(path string) (m marker, err error) {
	const limit = 4 << 10
	if dir, err := os.Lstat(filepath.Dir(path)); err == nil && !dir.IsDir() {
		return m, errors.New(DirName + " is not a directory")
	}
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return m, err
	case !info.Mode().IsRegular():
		return m, errors.New("it is not a regular file")
	case info.Size() > limit:
		return m, fmt.Errorf("it has %d bytes, over the limit of %d", info.Size(), limit)
	}
	return durable.ReadJSON[marker](path)
}

// findRoot returns the nearest directory at or above dir with a marker.
func findRoot(dir string) (root string, m *marker, err error) {
	for here := dir; ; here = filepath.Dir(here) {
		m, err := readMarker(here)
		if err != nil || m != nil {
			return here, m, err
		}
		if here == filepath.Dir(here) {
			return "", nil, &lockkeeper.InputError{Field: "directory", Value: dir,
				Reason: "no root found: neither it nor a directory above it has " + DirName + "/" + markerName,
				Next:   "lockkeeper init, in the root of the codebase"}
		}
	}
}

// refuseInner refuses a root inside of another root of this user. Init never makes one, and with
// a marker from elsewhere the files below it would have locks that no other process checks.
func refuseInner(root string, env func(string) (string, bool)) error {
	state, err := StateDir(env)
	if err != nil {
		return err
	}
	for here := filepath.Dir(root); here != filepath.Dir(here); here = filepath.Dir(here) {
		if m, err := readMarker(here); m == nil && err == nil {
			continue
		}
		if seen, err := worldOf(state, here).recall(); seen != nil || err != nil {
			return &lockkeeper.StoreError{Store: markerPath(root), Reason: "it lies inside the root " + here + ", whose locks already cover it", Err: err,
				Next: "remove " + filepath.Join(root, DirName) + "; if its locks are the ones to stay, remove " + filepath.Join(here, DirName)}
		}
	}
	return nil
}

// isUUID reports whether s is a UUID as newUUID writes it, which is safe as a file name.
func isUUID(s string) bool { return uuidPattern().MatchString(s) }

var uuidPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`) })

// IsOwn reports whether only Lockkeeper itself locks a path.
func IsOwn(path string) bool { return path == DirName || strings.HasPrefix(path, DirName+"/") }

// IsRoot reports whether the settings' directory is itself a root, not only inside of one. It
// returns an error if the directory had locks that were removed.
func IsRoot(s Settings) (bool, error) {
	dir, err := disk.RealDir(s.Dir)
	if err != nil {
		return false, nil // another work tree may not have this directory
	}
	at, err := placeAbove(dir, s.Env)
	return err == nil && at != nil && at.Root == dir, err
}

// placeAbove returns the codebase that a real directory is in, or nil if it is in none. It returns
// an error if the codebase had locks that were removed.
func placeAbove(dir string, env func(string) (string, bool)) (*Place, error) {
	root, m, err := findRoot(dir)
	if lockkeeper.CodeOf(err) == lockkeeper.CodeInput {
		if lost := lostRoot(env, dir, err); lost != err {
			return nil, lost
		}
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &Place{root, m}, nil
}

// RootOf returns the root of the codebase of a file, or "" if it belongs to none. See Find.
func RootOf(file string, env func(string) (string, bool)) (string, error) {
	at, err := Find(file, env)
	if at == nil {
		return "", err
	}
	return at.Root, err
}

// A Place is the root of a codebase, as it was at one moment.
type Place struct {
	Root   string // a real directory
	marker *marker
}

// Find returns the root of the codebase of a file, which need not exist yet, or nil if it belongs to
// none. It returns an error if the codebase had locks that were removed.
func Find(file string, env func(string) (string, bool)) (*Place, error) {
	dir := filepath.Dir(file)
	for {
		info, err := os.Stat(dir)
		if err == nil && info.IsDir() {
			break
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) {
			return nil, &lockkeeper.InputError{Field: "path", Value: file, Reason: disk.Reason(err), Next: "give a path that you can read"}
		}
		dir = filepath.Dir(dir) // the root of the file system always exists
	}
	real, err := disk.RealDir(dir)
	if err != nil {
		return nil, err
	}
	at, err := placeAbove(real, env)
	if err != nil || at == nil {
		return nil, err
	}
	return at, refuseInner(at.Root, env)
}

func (a *Project) Below(dir string) string {
	return filepath.Join(a.Root.Dir(), filepath.FromSlash(dir))
}

// A witness records, outside of the codebase, which lock world a root has.
type witness struct {
	Root  string `json:"root"`
	Space string `json:"space"`
	Store string `json:"store"` // address of the store, without password
}

// A world is the record of one root in the user's state directory.
type world struct {
	path string // path of the witness
	root string
}

func worldOf(state, root string) world {
	sum := sha256.Sum256([]byte(root))
	return world{path: filepath.Join(state, "worlds", hex.EncodeToString(sum[:16])+".json"), root: root}
}

func (w world) alivePath() string { return w.path[:len(w.path)-len(".json")] + ".alive" }

// recall reads the witness. It returns nil if this user never used the root.
func (w world) recall() (*witness, error) {
	seen, err := durable.ReadJSON[witness](w.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &lockkeeper.StoreError{Store: w.path, Reason: "the record of the locks at " + w.root + " cannot be read", Err: err,
			Next: "make it readable; remove it only if nothing at this root is locked"}
	}
	return &seen, nil
}

// recallElsewhere reads the witness of a root under another path at which it is mounted. It
// returns nil if there is none, or if it names another space.
func recallElsewhere(state, root, space string) (*witness, error) {
	for _, name := range disk.MountedNames(root) {
		seen, err := worldOf(state, name).recall()
		if err != nil || seen != nil && seen.Space == space {
			return seen, err
		}
	}
	return nil, nil
}

func (w world) remember(ctx context.Context, space, store string) error {
	return durable.WriteJSON(ctx, w.path, witness{Root: w.root, Space: space, Store: store}, 0o600)
}

// enter registers a user of the world until the file is closed. It waits while init makes the
// world, which takes milliseconds.
func (w world) enter() (*os.File, error) {
	f, err := w.open()
	if err != nil {
		return nil, err
	}
	if err := filelock.Share(f); err != nil {
		f.Close()
		return nil, w.trouble(err)
	}
	return f, nil
}

// lockAlone locks the world for init until the file is closed. It fails with an *inUseError if
// another process uses it.
func (w world) lockAlone() (*os.File, error) {
	f, err := w.open()
	if err != nil {
		return nil, err
	}
	alone, err := filelock.Try(f)
	switch {
	case err != nil:
		f.Close()
		return nil, w.trouble(err)
	case !alone:
		pids := flockPIDs(f)
		f.Close()
		return nil, &inUseError{pids: pids}
	}
	return f, nil
}

func (w world) open() (*os.File, error) {
	worlds := filepath.Dir(w.path)
	for _, dir := range []string{filepath.Dir(worlds), worlds} {
		if err := makeDir(dir); err != nil {
			return nil, err
		}
	}
	f, err := os.OpenFile(w.alivePath(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, w.trouble(err)
	}
	return f, nil
}

func (w world) trouble(err error) error {
	return &lockkeeper.StoreError{Store: w.alivePath(), Reason: "cannot be locked", Err: err, Next: "check the permissions of your state directory"}
}

// An inUseError names the processes that use a world.
type inUseError struct{ pids []int }

func (e *inUseError) Error() string {
	if len(e.pids) == 0 {
		return "processes of yours still use it"
	}
	var list []string
	for _, pid := range e.pids {
		name := strconv.Itoa(pid)
		if command := commandOf(pid); command != "" {
			name += " (" + command + ")"
		}
		list = append(list, name)
	}
	return "processes of yours still use it: pid " + strings.Join(list, ", ")
}

// WorkspaceVariable names the environment variable with the workspace in which an agent of a run
// works.
const WorkspaceVariable = "LOCKKEEPER_WORKSPACE"

// lostRoot replaces err, which says that there is no root, if a witness shows that there was one at
// dir or above it.
func lostRoot(env func(string) (string, bool), dir string, err error) error {
	workspace, inRun := env(WorkspaceVariable)
	if inRun && (dir == workspace || lockkeeper.IsAncestor(workspace, dir)) {
		return err // a workspace has no locks: the run lands its changes through the gate
	}
	state, stateErr := StateDir(env)
	if stateErr != nil {
		return err
	}
	for here := dir; ; here = filepath.Dir(here) {
		if seen, readErr := worldOf(state, here).recall(); readErr == nil && seen != nil {
			if inRun { // the sandbox hides the codebase
				return &lockkeeper.StoreError{Store: here, Reason: "this run cannot see it; it works on a copy in " + workspace, Next: "name files below " + workspace}
			}
			return goneWorld(here, seen)
		}
		if here == filepath.Dir(here) {
			return err
		}
	}
}

func goneWorld(root string, seen *witness) *lockkeeper.StoreError {
	if config.IsPostgres(seen.Store) {
		return &lockkeeper.StoreError{Store: root, Reason: DirName + " is gone, as after git clean -fdx; its locks are still in PostgreSQL, in space " + seen.Space + " of " + seen.Store,
			Next: joinCommand(seen.Store, seen.Space)}
	}
	return &lockkeeper.StoreError{Store: root, Reason: "its locks were removed: space " + seen.Space + " was kept in " + seen.Store + " and " + DirName + " is gone, as after git clean -fdx or a new clone at this path",
		Next: "restore " + DirName + "; if no process works here any more, as in a new clone, `lockkeeper init --new-world` in a terminal"}
}

// joinCommand returns the command that joins a space of PostgreSQL. It leaves out a store with a
// hidden password, which must come from the environment or the configuration.
func joinCommand(store, space string) string {
	if config.HasPassword(store) {
		return "lockkeeper init --space " + space + " (with LOCKKEEPER_STORE set as here)"
	}
	return "lockkeeper init --store '" + store + "' --space " + space
}

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

	"lockkeeper"
	"lockkeeper/durable"
	"lockkeeper/internal/machine/disk"
	"lockkeeper/internal/machine/filelock"
	"lockkeeper/internal/project/config"
)

// A witness records, outside of the codebase, which lock world a root has.
type witness struct {
	Root  string `json:"root"`
	Space string `json:"space"`
	Store string `json:"store"` // without password
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
		return nil, &lockkeeper.StoreError{Store: w.path, Reason: "the witness of the locks at " + w.root + " cannot be read", Err: err,
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
	s := "processes of yours still use it: pid"
	for i, pid := range e.pids {
		if i > 0 {
			s += ","
		}
		s += fmt.Sprintf(" %d", pid)
		if name := commandOf(pid); name != "" {
			s += fmt.Sprintf(" (%s)", name)
		}
	}
	return s
}

// WorkspaceVariable names the environment variable with the workspace in which an agent of a run
// works.
const WorkspaceVariable = "LOCKKEEPER_WORKSPACE"

// lostRoot returns a better error than err, which says that there is no root, if a witness shows
// that there was one at dir or above it.
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
	return &lockkeeper.StoreError{Store: root, Reason: "its locks were removed: space " + seen.Space + " was kept in " + seen.Store + " and " + DirName + " is gone, as after git clean -fdx",
		Next: "restore " + DirName + "; if no process works here any more, `lockkeeper init --new-world`"}
}

// joinCommand returns the command that joins a space of PostgreSQL. It leaves out a store with a
// hidden password, which must come from the environment or the configuration.
func joinCommand(store, space string) string {
	if config.HasPassword(store) {
		return "lockkeeper init --space " + space + " (with LOCKKEEPER_STORE set as here)"
	}
	return "lockkeeper init --store '" + store + "' --space " + space
}

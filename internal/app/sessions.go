package app

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"lockkeeper"
)

// SessionsDir is where what this user's interactive sessions remember of this codebase is
// kept, in the user's own directory.
func (a *App) SessionsDir() string { return filepath.Join(a.state, "sessions", a.Space) }

// CopiesDir is where sessions keep content of files as they knew it, by its SHA-256 in hex.
func (a *App) CopiesDir() string { return filepath.Join(a.SessionsDir(), "copies") }

// Copy is content that a session has kept; nil when it is not there, or not as it was.
func (a *App) Copy(sum string) []byte {
	content, err := os.ReadFile(filepath.Join(a.CopiesDir(), sum))
	if err != nil || fmt.Sprintf("%x", sha256.Sum256(content)) != sum {
		return nil
	}
	return content
}

// SessionsDirs lists what SessionsDir is for each codebase in which this user has sessions.
func SessionsDirs(env func(string) (string, bool)) (dirs []string, err error) {
	state, err := stateDir(env)
	if err != nil {
		return nil, err
	}
	state = filepath.Join(state, "sessions")
	list, err := os.ReadDir(state)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range list {
		dirs = append(dirs, filepath.Join(state, e.Name()))
	}
	return dirs, err
}

// DeferredDir is where patches wait for a lock.
func (a *App) DeferredDir() string { return a.below(dirName + "/deferred") }

// RootOf finds the codebase that a file belongs to, which need not be there yet; empty
// when it belongs to none. Of locks that were there and are gone it says so.
func RootOf(file string, env func(string) (string, bool)) (string, error) {
	dir := filepath.Dir(file)
	for {
		info, err := os.Stat(dir)
		if err == nil && info.IsDir() {
			break
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) {
			return "", &lockkeeper.InputError{Field: "path", Value: file, Reason: reasonOf(err), Next: "give a path that you may look at"}
		}
		dir = filepath.Dir(dir) // the root of the file system is always there
	}
	real, err := realDir(dir)
	if err != nil {
		return "", err
	}
	root, _, err := findRoot(real)
	if err == nil {
		return root, refuseInner(root, env)
	}
	if lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
		return root, err
	}
	if lost := lostRoot(env, real, err); lost != err {
		return "", lost
	}
	return "", nil
}

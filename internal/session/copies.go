package session

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"lockkeeper/internal/project"
)

// SessionsDir returns the directory for this user's session records of this codebase. It is in
// the user's state directory.
func SessionsDir(a *project.Project) string { return filepath.Join(a.StateDir, "sessions", a.Space) }

// CopiesDir returns the directory for the file contents that sessions know, named by SHA-256 in hex.
func CopiesDir(a *project.Project) string { return filepath.Join(SessionsDir(a), "copies") }

// Copy returns content that a session kept, or nil if it is missing or damaged.
func Copy(a *project.Project, sum string) []byte {
	content, err := os.ReadFile(filepath.Join(CopiesDir(a), sum))
	if err != nil || fmt.Sprintf("%x", sha256.Sum256(content)) != sum {
		return nil
	}
	return content
}

// SessionsDirs lists the SessionsDir of each codebase in which this user has sessions.
func SessionsDirs(env func(string) (string, bool)) (dirs []string, err error) {
	state, err := project.StateDir(env)
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

package escape

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// protected lists files of the shared tree that no agent may change. All of them exist.
var protected = []string{"lockkeeper.yaml", ".lockkeeper/space.json", ".git/config", ".git/hooks/pre-commit", "hooks/pre-commit",
	".claude/settings.json", ".mcp.json", ".codex/config.toml", ".gemini/settings.json", ".pipeline/notes.json", ".analysis/notes.json", "app/other.txt", coveredBy}

func writeAttempts() (list []attempt) {
	for _, path := range protected {
		list = append(list, attempt{name: "open for writing: " + path, try: func(w *world) error { return openForWriting(filepath.Join(w.Root, path)) }})
	}
	within := func(name, path string, act func(path string) error, open func(level) string) {
		list = append(list, attempt{name: name, open: open, try: func(w *world) error { return act(filepath.Join(w.Root, path)) }})
	}
	attributes := func(l level) string {
		if l.alone() {
			return "Landlock does not hold attributes"
		}
		return ""
	}
	within("create a file in the shared tree", "app/created.txt", create, nil)
	within("create a hook of git", ".git/hooks/post-commit", create, nil)
	within("truncate in place", "app/other.txt", func(path string) error { return truncateToItself(path) }, nil)
	within("rename in the shared tree", "app/other.txt", func(path string) error {
		if err := os.Rename(path, path+".moved"); err != nil {
			return err
		}
		return os.Rename(path+".moved", path)
	}, nil)
	within("write through a hard link", "app/other.txt", func(path string) error {
		defer os.Remove("linked")
		if err := os.Link(path, "linked"); err != nil {
			return err
		}
		return openForWriting("linked")
	}, nil)
	within("write through a symbolic link", "app/other.txt", func(path string) error {
		defer os.Remove("followed")
		return errors.Join(os.Symlink(path, "followed"), openForWriting("followed"))
	}, nil)
	within("change a mode", "app/other.txt", func(path string) error { return os.Chmod(path, 0o644) }, attributes)
	within("change a time", "app/other.txt", func(path string) error { return os.Chtimes(path, time.Time{}, time.Now()) }, attributes)
	within("set an extended attribute", "app/other.txt", func(path string) error { return unix.Setxattr(path, "user.escape", []byte("x"), 0) }, attributes)
	list = append(list,
		attempt{name: "add a name to the server's people", try: func(w *world) error { return create(filepath.Join(w.Access, "people", "escape.json")) }},
		attempt{name: "write into ~", try: func(w *world) error {
			if _, err := os.Lstat(filepath.Join(w.Home, homeSecrets[0])); err != nil {
				return err // not the real home but another, empty directory
			}
			return create(filepath.Join(w.Home, "created"))
		}},
		attempt{name: "change a start file of the shell", try: func(w *world) error { return openForWriting(filepath.Join(w.Home, ".bash_history")) }},
	)
	return list
}

func openForWriting(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

func create(path string) error {
	if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
		return err
	}
	return os.Remove(path)
}

func truncateToItself(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return os.Truncate(path, info.Size())
}

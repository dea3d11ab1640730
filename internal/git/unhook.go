package git

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"lockkeeper/durable"
)

// An InstalledHook is a hook of git that InstallHook wrote, or added a line to.
type InstalledHook struct {
	Path string
	What string // what Remove does, for people

	text string // the hook without our line; empty: the whole file is ours
}

// Hooks lists the installed hooks of a repository. It returns none outside of a repository.
func Hooks(ctx context.Context, tree *WorkTree) (list []InstalledHook, err error) {
	if _, err := Open(ctx, tree.root, tree.git.Env); err != nil {
		if _, none := errors.AsType[*NoneError](err); none {
			return nil, nil
		}
		return nil, err
	}
	top, err := tree.top(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := tree.hooks(ctx, top)
	if err != nil {
		return nil, nil // init installs no hook outside of the repository
	}
	places := []string{dir}
	if isShared(top, dir) && filepath.Base(dir) == "_" {
		places = append(places, filepath.Dir(dir))
	}
	for _, place := range places {
		for _, name := range []string{"pre-commit", "pre-commit" + legacy, "pre-push", "pre-push" + legacy} {
			path := filepath.Join(place, name)
			text, err := readHook(path)
			if err != nil {
				return nil, err
			}
			if h, ours := installed(path, text); ours {
				list = append(list, h)
			}
		}
	}
	return list, nil
}

// installed returns what Remove does with a hook, and whether it has a part of ours.
func installed(path, text string) (h InstalledHook, ours bool) {
	switch {
	case strings.HasPrefix(text, hookHead):
		h = InstalledHook{Path: path, What: "remove the hook"}
		if next := chainedOf(path); next != "" && !isAgain(path, next) {
			h.What = "restore the hook that it runs, " + filepath.Base(next)
		}
		return h, true
	case strings.Contains(text, "# "+hookMark+"\n"):
		h = InstalledHook{Path: path, What: "remove the line of Lockkeeper"}
		for line := range strings.Lines(text) {
			if !strings.HasSuffix(line, "# "+hookMark+"\n") {
				h.text += line
			}
		}
		return h, true
	}
	return h, false
}

// Remove removes a hook, or its line. A hook that the removed hook ran gets its name back.
func (h InstalledHook) Remove(ctx context.Context) error {
	if h.text != "" {
		info, err := os.Stat(h.Path)
		if err != nil {
			return err
		}
		return durable.WriteFile(ctx, h.Path, []byte(h.text), info.Mode().Perm())
	}
	said, err := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(h.Path)), saidPrefix+"*"+told))
	if err != nil {
		said = nil // the directory has brackets in its name
	}
	for _, path := range append(said, h.Path+told) {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	next := chainedOf(h.Path)
	if next == "" {
		return os.Remove(h.Path)
	}
	if isAgain(h.Path, next) {
		return errors.Join(os.Remove(h.Path), os.Remove(next))
	}
	return os.Rename(next, h.Path)
}

// chainedOf returns the path of the hook that ours runs, or "".
func chainedOf(path string) string {
	next := strings.TrimSuffix(path, legacy) + chained
	if _, err := os.Lstat(next); err != nil {
		return ""
	}
	return next
}

// isAgain reports whether pre-commit wrote the hook that ours ran, and is installed again in its place.
func isAgain(path, next string) bool {
	text, err := os.ReadFile(next)
	return err == nil && strings.HasSuffix(path, legacy) && strings.Contains(string(text), ofPreCommit)
}

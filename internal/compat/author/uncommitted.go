package author

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/durable"
	"lockkeeper/internal/git/coverage"
	"lockkeeper/rescue"
)

// An Uncommitted is one file that was changed under a claim and is not committed.
type Uncommitted struct {
	Path    string   `json:"path"`
	Deleted bool     `json:"deleted,omitempty"`
	Added   int      `json:"words_added"`
	Removed int      `json:"words_removed"`
	Begins  []string `json:"begins,omitempty"` // the beginnings of the added text
}

const (
	shownPieces = 3
	shownRunes  = 72
	maxText     = 16 << 20 // the limit for counting words
)

// Uncommitted lists the uncommitted changes in the files of a claim, which a new holder
// takes over with the claim. Without git it lists the files changed since the claim began.
func (au *Author) Uncommitted(ctx context.Context, s GrantStatus) (list []Uncommitted, err error) {
	changes, err := coverage.Find(ctx, au.app, au.git, nil, false)
	if err != nil {
		return au.changedSince(ctx, s)
	}
	for _, c := range changes.List {
		if !covers(s, c.Path) || slices.ContainsFunc(list, func(u Uncommitted) bool { return u.Path == c.Path }) {
			continue
		}
		u := Uncommitted{Path: c.Path, Deleted: c.Deleted}
		diff, err := au.git.WordDiff(ctx, c.Path)
		switch {
		case err == nil && diff != "":
			u.count(diff)
		case !c.Deleted: // the file is not tracked, or the repository has no commit yet
			text, err := au.text(c.Path)
			if err != nil {
				return nil, err
			}
			u.addText(text)
		}
		list = append(list, u)
	}
	return list, nil
}

func covers(s GrantStatus, path string) bool {
	return slices.ContainsFunc(s.Locks, func(l lockkeeper.Lock) bool {
		return l.Mode == lockkeeper.Write && (l.Kind == lockkeeper.File || l.Kind == lockkeeper.Dir) && (l.Path == path || lockkeeper.IsAncestor(l.Path, path))
	})
}

// changedSince lists the files of a claim that were written since it began.
func (au *Author) changedSince(ctx context.Context, s GrantStatus) (list []Uncommitted, err error) {
	root := os.DirFS(au.app.Root.Dir())
	for _, l := range s.Locks {
		if l.Kind != lockkeeper.File && l.Kind != lockkeeper.Dir || l.Mode != lockkeeper.Write {
			continue
		}
		err := fs.WalkDir(root, l.Path, func(at string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err == nil {
				err = ctx.Err()
			}
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			info, err := d.Info()
			if err != nil || info.ModTime().Before(s.Since.Add(-durable.FileTick)) {
				return err
			}
			text, err := au.text(at)
			u := Uncommitted{Path: path.Clean(at)}
			u.addText(text)
			list = append(list, u)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (au *Author) open(name string) (*os.File, error) {
	root, err := os.OpenRoot(au.app.Root.Dir())
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|unix.O_NONBLOCK, 0)
}

// text returns the beginning of a file.
func (au *Author) text(name string) (string, error) {
	f, err := au.open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return "", err
	}
	text := make([]byte, min(info.Size(), maxText))
	n, err := f.ReadAt(text, 0)
	if n < len(text) && err != nil {
		return "", err
	}
	return string(text), nil
}

// count counts the words of a word diff.
func (u *Uncommitted) count(diff string) {
	inside := false
	for line := range strings.Lines(diff) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "@@"):
			inside = true
		case !inside:
		case strings.HasPrefix(line, "+"):
			u.addText(line[1:])
		case strings.HasPrefix(line, "-"):
			u.Removed += len(strings.Fields(line[1:]))
		}
	}
}

// addText counts added words and keeps the beginnings of their lines.
func (u *Uncommitted) addText(text string) {
	u.Added += len(strings.Fields(text))
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || len(u.Begins) == shownPieces {
			continue
		}
		if runes := []rune(line); len(runes) > shownRunes {
			line = string(runes[:shownRunes]) + "…"
		}
		u.Begins = append(u.Begins, line)
	}
}

// keep copies the uncommitted files of a claim to the rescue shelf and returns their
// paths.
func (au *Author) keep(ctx context.Context, s GrantStatus, reason string) (paths []string, err error) {
	list, err := au.Uncommitted(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("claim not overridden: cannot back up the uncommitted work of %s: %w", s.Instance, err)
	}
	for _, u := range list {
		if u.Deleted {
			continue
		}
		kept, err := au.keepFile(ctx, s, u.Path, reason)
		if err != nil {
			return nil, fmt.Errorf("claim not overridden: cannot back up %s: %w", u.Path, err)
		}
		if kept {
			paths = append(paths, u.Path)
		}
	}
	return paths, nil
}

// keepFile copies a regular file, if it still exists.
func (au *Author) keepFile(ctx context.Context, s GrantStatus, name, reason string) (kept bool, err error) {
	f, err := au.open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return false, err
	}
	_, err = au.app.Shelf().Put(ctx, rescue.Entry{Kind: rescue.Displaced, Path: name, GrantID: s.Grant, Holder: s.Instance, Mode: info.Mode().Perm(),
		Reason: "not committed when the claim of " + s.Instance + " was overridden: " + reason}, f)
	return err == nil, err
}

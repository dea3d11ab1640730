package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"lockkeeper/internal/session/refusal"
)

// Elsewhere warns of files that another session changes in another work tree of the same
// repository, because the changes will need a merge. It records the work tree of this session.
func (s *Session) Elsewhere(list []Write) (warnings []string, err error) {
	var others map[string]record
	for _, w := range list {
		key, top, err := repository(s.registry.at(w.Path))
		if err != nil {
			return nil, err
		}
		if key == "" || s.rec.Trees[key] == top {
			continue
		}
		if s.rec.Trees == nil {
			s.rec.Trees = map[string]string{}
		}
		s.rec.Trees[key] = top
		if others == nil {
			if others, err = s.registry.everywhere(); err != nil {
				return nil, err
			}
		}
		for file, r := range others {
			at, changes := r.Trees[key]
			if file == s.file || !changes || at == top || r.GrantID == "" || !s.registry.alive(r.Info) {
				continue
			}
			who := refusal.Holder{Callsign: r.Callsign, TTY: r.TTY}
			warnings = append(warnings, fmt.Sprintf("WARNING %s is being changed by %s in another work tree, %s: one of you will have to merge.", w.Path, who.Name(), at))
		}
	}
	return warnings, nil
}

// everywhere reads the session records of this user in all codebases, because each work tree may
// be a separate codebase.
func (b *Registry) everywhere() (map[string]record, error) {
	dirs, err := filepath.Glob(filepath.Join(filepath.Dir(b.dir), "*"))
	all := map[string]record{}
	for _, dir := range dirs {
		some, reading := (&Registry{app: b.app, dir: dir, now: b.now}).records()
		err = errors.Join(err, reading)
		for file, r := range some {
			all[file] = r
		}
	}
	return all, err
}

// repository returns a key for a file within its repository, equal in all work trees, and the
// work tree of the file. Both are empty if the file is in no repository, or the repository has
// only one work tree.
func repository(file string) (key, top string, err error) {
	for top = filepath.Dir(file); ; top = filepath.Dir(top) {
		info, err := os.Lstat(filepath.Join(top, ".git"))
		switch {
		case err == nil:
			common, err := commonDir(top, info)
			if err != nil || common == "" {
				return "", "", err
			}
			if others, err := os.ReadDir(filepath.Join(common, "worktrees")); err != nil || len(others) == 0 {
				return "", "", nil
			}
			rel, err := filepath.Rel(top, file)
			return common + "\x00" + rel, top, err
		case !errors.Is(err, fs.ErrNotExist):
			return "", "", err
		case top == filepath.Dir(top):
			return "", "", nil
		}
	}
}

// commonDir returns the directory that all work trees of a repository share.
func commonDir(top string, info fs.FileInfo) (string, error) {
	dir := filepath.Join(top, ".git")
	if info.IsDir() {
		return filepath.EvalSymlinks(dir)
	}
	text, err := os.ReadFile(dir)
	at, linked := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir: ")
	if err != nil || !linked {
		return "", err
	}
	if !filepath.IsAbs(at) {
		at = filepath.Join(top, at)
	}
	common, err := os.ReadFile(filepath.Join(at, "commondir"))
	if errors.Is(err, fs.ErrNotExist) {
		return filepath.EvalSymlinks(at)
	}
	if err != nil {
		return "", err
	}
	shared := strings.TrimSpace(string(common))
	if !filepath.IsAbs(shared) {
		shared = filepath.Join(at, shared)
	}
	return filepath.EvalSymlinks(shared)
}

package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"lockkeeper"
	"lockkeeper/internal/project"
	"lockkeeper/internal/session/refusal"
)

// Elsewhere warns of files that another session changes in another work tree of the same
// repository, because the changes will need a merge. It records the work tree of this session.
func (s *Session) Elsewhere(list []Write) (warnings []string, err error) {
	for _, w := range list {
		some, err := s.elsewhere(s.registry.at(w.Path), w.Path, false)
		if warnings = append(warnings, some...); err != nil {
			return warnings, err
		}
	}
	return warnings, nil
}

// ElsewhereOutside does what Elsewhere does, for absolute files in a work tree outside the codebase,
// which nobody can lock. They count until the end of the turn.
func (s *Session) ElsewhereOutside(files []string) (warnings []string, err error) {
	for _, f := range files {
		some, err := s.elsewhere(f, f, true)
		if warnings = append(warnings, some...); err != nil {
			return warnings, err
		}
	}
	return warnings, nil
}

func (s *Session) elsewhere(file, name string, outside bool) (warnings []string, err error) {
	key, top, several, err := repository(file)
	if err != nil || key == "" || s.rec.Trees[key] == top && (s.rec.Outside[key] || !outside) {
		return nil, err
	}
	if s.rec.Trees == nil {
		s.rec.Trees = map[string]string{}
	}
	s.rec.Trees[key] = top
	if outside {
		if s.rec.Outside == nil {
			s.rec.Outside = map[string]bool{}
		}
		s.rec.Outside[key] = true
	}
	if !several {
		return nil, nil
	}
	others, err := s.registry.everywhere()
	for other, r := range others {
		at, changes := r.Trees[key]
		if other == s.file || !changes || at == top || r.GrantID == "" && !r.Outside[key] || !s.registry.alive(r.Info) {
			continue
		}
		who := refusal.Holder{Callsign: r.Callsign, TTY: r.TTY}
		warnings = append(warnings, fmt.Sprintf("WARNING %s is being changed by %s in another work tree, %s: one of you will have to merge.", name, who.Name(), at))
	}
	return warnings, err
}

// RootsBeside lists the codebases in the other work trees of a file's repository.
func RootsBeside(file string, env func(string) (string, bool)) (roots []string, err error) {
	key, top, several, err := repository(file)
	if err != nil || !several {
		return nil, err
	}
	common, _, _ := strings.Cut(key, "\x00")
	tops := []string{filepath.Dir(common)}
	links, err := filepath.Glob(filepath.Join(common, "worktrees", "*", "gitdir"))
	for _, link := range links {
		if text, err := os.ReadFile(link); err == nil { // otherwise the work tree is being removed
			tops = append(tops, filepath.Dir(strings.TrimSpace(string(text))))
		}
	}
	for _, t := range tops {
		if root, err := project.RootOf(filepath.Join(t, lockkeeper.GitTarget), env); err == nil && root != "" && t != top && !slices.Contains(roots, root) {
			roots = append(roots, root)
		}
	}
	return roots, err
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

// repository returns a key for a file within its repository, which is equal in all work trees. It
// also returns the work tree of the file, and whether the repository has several. All are empty if
// the file is in no repository.
func repository(file string) (key, top string, several bool, err error) {
	for top = filepath.Dir(file); ; top = filepath.Dir(top) {
		info, err := os.Lstat(filepath.Join(top, lockkeeper.GitTarget))
		switch {
		case err == nil:
			common, err := commonDir(top, info)
			if err != nil || common == "" {
				return "", "", false, err
			}
			others, err := os.ReadDir(filepath.Join(common, "worktrees"))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return "", "", false, err
			}
			rel, err := filepath.Rel(top, file)
			return common + "\x00" + rel, top, len(others) > 0, err
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR):
			return "", "", false, err
		case top == filepath.Dir(top):
			return "", "", false, nil
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

package session

import (
	"context"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"lockkeeper"
)

const (
	nearLooked = 5_000 // limit of tree entries to examine
	nearShown  = 3
)

// near finds, for each refused path, free files with related names, such as the tests and views
// of a model. The result is only a hint, so the search is short.
func (s *Session) near(ctx context.Context, refused map[string]lockkeeper.ConflictInfo) (map[string][]string, error) {
	found := map[string][]string{}
	left := nearLooked
	err := fs.WalkDir(os.DirFS(s.registry.app.Root.Dir()), ".", func(name string, e fs.DirEntry, err error) error {
		left--
		switch {
		case left < 0:
			return fs.SkipAll
		case err != nil || name == ".":
			return nil // skip entries that cannot be read
		case e.IsDir() && (strings.HasPrefix(e.Name(), ".") || slices.Contains(foreign, e.Name())):
			return fs.SkipDir
		}
		for p := range refused {
			if belongs(p, name) && len(found[p]) < 4*nearShown {
				found[p] = append(found[p], name)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for p, names := range found {
		if found[p], err = s.freeOf(ctx, names); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// foreign lists directories of third-party or generated files.
var foreign = []string{"node_modules", "vendor", "target", "dist", "build"}

// belongs reports whether a name is related to a path: user_test.rb and users are related to
// user.rb.
func belongs(p, name string) bool {
	stem := stemOf(p)
	return len(stem) > 2 && name != p && strings.Contains(stemOf(name), stem)
}

func stemOf(p string) string {
	stem, _, _ := strings.Cut(path.Base(p), ".")
	return strings.ToLower(stem)
}

// freeOf returns the names that could be written now. A directory represents the files in it.
func (s *Session) freeOf(ctx context.Context, names []string) (free []string, err error) {
	for _, name := range names {
		l := write(name)
		info, err := os.Lstat(s.registry.at(name))
		if err != nil {
			continue
		}
		if info.IsDir() {
			l.Kind, l.Mode = lockkeeper.Dir, lockkeeper.Read
			name += "/*"
		}
		taken, err := s.others(ctx, []lockkeeper.Lock{l})
		if err != nil {
			return nil, err
		}
		if len(taken) == 0 && len(free) < nearShown {
			free = append(free, name)
		}
	}
	return free, nil
}

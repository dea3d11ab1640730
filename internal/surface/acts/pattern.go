package acts

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"lockkeeper"
	"lockkeeper/internal/project"
)

// Exists reports whether a path exists.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Match returns the files that a pattern matches, and a value that is no pattern as it is. A value that exists is no
// pattern, nor are its leading directories that exist, as app/[id] in app/[id]/*.tsx. The function at returns where a
// path is on disk. With dirs a pattern also matches directories.
func Match(at func(string) string, value string, dirs bool) ([]string, error) {
	if !strings.ContainsAny(value, "*?[") || Exists(at(value)) {
		return []string{value}, nil
	}
	base, pattern := split(at, value)
	options := []doublestar.GlobOption{doublestar.WithNoFollow(), doublestar.WithNoHidden(), doublestar.WithFailOnIOErrors()}
	if !dirs {
		options = append(options, doublestar.WithFilesOnly())
	}
	found, err := doublestar.Glob(os.DirFS(at(base)), strings.NewReplacer("{", `\{`, "}", `\}`).Replace(pattern), options...)
	for i := range found {
		found[i] = base + found[i]
	}
	slices.Sort(found)
	switch {
	case (err == nil && len(found) == 0 || errors.Is(err, doublestar.ErrBadPattern)) && !isPattern(pattern):
		return []string{value}, nil // the value is the name of a new file, such as [id].tsx or a[1
	case err == nil && len(found) == 0:
		return nil, &lockkeeper.InputError{Field: "path", Value: value, Reason: "no file matches this pattern", Next: "name the files; a new file has no pattern"}
	case err != nil:
		return nil, &lockkeeper.InputError{Field: "path", Value: value, Reason: "not a usable pattern: " + err.Error(), Next: "name the files"}
	}
	return found, nil
}

// split returns the leading directories of a path that exist, with a slash at the end, and the rest.
func split(at func(string) string, path string) (base, rest string) {
	for rest = path; ; {
		first, more, found := strings.Cut(rest, "/")
		if !found || first != "" && !Exists(at(base+first)) {
			return base, rest
		}
		base, rest = base+first+"/", more
	}
}

// isPattern reports whether a path that does not exist is a pattern even if it matches no file.
func isPattern(path string) bool { return strings.ContainsAny(path, "*?") }

// CheckName refuses a pattern in place of the name of a file, for callers that name each file. A relative path starts at
// the root.
func CheckName(a *project.Project, path string) error {
	at := func(path string) string {
		if filepath.IsAbs(path) {
			return path
		}
		return filepath.Join(a.Root.Dir(), path)
	}
	refusal := &lockkeeper.InputError{Field: "path", Value: path, Reason: "a pattern, and no file has this name", Next: "list the files, each by its name"}
	if _, rest := split(at, path); isPattern(rest) && !Exists(at(path)) { // not matched, because a caller on the network could make that slow
		return refusal
	}
	found, err := Match(at, path, true)
	if err == nil && !slices.Equal(found, []string{path}) {
		err = refusal
	}
	return err
}

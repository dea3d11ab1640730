//go:build unix

package workspace

import (
	"path/filepath"
	"slices"
	"strings"
)

// Env makes the environment for commands that run in the workspace out of another
// one: without what would lead git, or a shell, to where that other one was, and
// with a bound above which git does not look for a repository.
func (w *Workspace) Env(environ []string) []string {
	return append(withoutPlace(environ), "GIT_CEILING_DIRECTORIES="+w.dir, "PWD="+w.Dir())
}

// placeVariables tell git which repository to work on (git rev-parse
// --local-env-vars, and a few more), or a shell where it is.
var placeVariables = []string{
	"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_CEILING_DIRECTORIES", "GIT_COMMON_DIR", "GIT_CONFIG", "GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS",
	"GIT_DIR", "GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_GRAFT_FILE", "GIT_IMPLICIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_INTERNAL_SUPER_PREFIX",
	"GIT_NAMESPACE", "GIT_NO_REPLACE_OBJECTS", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX", "GIT_QUARANTINE_PATH", "GIT_REPLACE_REF_BASE",
	"GIT_SHALLOW_FILE", "GIT_WORK_TREE", "OLDPWD", "PWD",
}

func withoutPlace(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(placeVariables, name) || strings.HasPrefix(name, "GIT_CONFIG_KEY_") || strings.HasPrefix(name, "GIT_CONFIG_VALUE_")
	})
}

// gitQuote spells a path as git does in its files, for paths of any bytes.
func gitQuote(path string) string {
	var b strings.Builder
	quoted := strings.HasPrefix(path, "#")
	for i := range len(path) {
		switch c := path[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
			quoted = true
		case c < ' ' || c >= 0x7f:
			b.Write([]byte{'\\', '0' + c>>6, '0' + c>>3&7, '0' + c&7})
			quoted = true
		default:
			b.WriteByte(c)
		}
	}
	if !quoted {
		return path
	}
	return `"` + b.String() + `"`
}

func abs(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

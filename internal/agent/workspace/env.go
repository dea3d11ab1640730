//go:build unix

package workspace

import (
	"path/filepath"
	"slices"
	"strings"

	"lockkeeper/internal/git/gitenv"
)

// Env makes the environment for commands that run in the workspace out of another
// one: without what would lead git, or a shell, to where that other one was, and
// with a bound above which git does not look for a repository.
func (w *Workspace) Env(environ []string) []string {
	return append(withoutPlace(environ), "GIT_CEILING_DIRECTORIES="+w.dir, "PWD="+w.Dir())
}

// configVariables are settings for one git, and limits of where it looks for a repository.
// They belong to whatever the caller was started from.
var configVariables = []string{"GIT_CEILING_DIRECTORIES", "GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS", "GIT_DISCOVERY_ACROSS_FILESYSTEM"}

func withoutPlace(environ []string) []string {
	return slices.DeleteFunc(gitenv.Outside(environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(configVariables, name) || strings.HasPrefix(name, "GIT_CONFIG_KEY_") || strings.HasPrefix(name, "GIT_CONFIG_VALUE_")
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

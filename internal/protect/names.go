package protect

import (
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

const (
	gitDir = ".git"        // at any depth
	ownDir = ".lockkeeper" // at any depth, because it makes a root of its directory
)

// ConfigFile is the configuration of a codebase, in its root.
const ConfigFile = "lockkeeper.yaml"

// IsReserved reports whether a single name belongs to git or to Lockkeeper in every
// directory.
func IsReserved(name string) bool {
	name = fold(name)
	return name == gitDir || name == ownDir
}

// HasReserved reports whether a path has such a name in it, and which.
func HasReserved(path string) (name string, is bool) {
	for part := range strings.SplitSeq(filepath.ToSlash(path), "/") {
		if IsReserved(part) {
			return part, true
		}
	}
	return "", false
}

// HostFiles lists the files of a project in which agents find their hooks. An agent may be
// started in any directory, so they are protected at any depth.
func HostFiles() []string {
	return []string{".claude/settings.json", ".claude/settings.local.json", ".codex/hooks.json", ".codex/config.toml", ".gemini/settings.json"}
}

// homeFiles lists what is protected in a user's home directory, by class.
func homeFiles() map[string]Class {
	files := map[string]Class{".gemini/trustedFolders.json": Hooks, ".claude/plugins": Hooks}
	for _, n := range HostFiles() {
		files[n] = Hooks
	}
	for _, kept := range []string{"access", "sessions", "tokens", "worlds"} {
		files[".local/state/lockkeeper/"+kept] = Own
	}
	return files
}

// HomeVariables maps variables to the directory of the user's home that each one moves; empty: all
// of it.
func HomeVariables() map[string]string {
	return map[string]string{"XDG_STATE_HOME": ".local/state", "CLAUDE_CONFIG_DIR": ".claude", "CODEX_HOME": ".codex", "GEMINI_CLI_HOME": ""}
}

// namesAtHome lists what is protected for the user and on the system, absolute.
func namesAtHome(env func(string) (string, bool)) map[string]Class {
	names := map[string]Class{"/etc/claude-code": Hooks, "/etc/codex": Hooks, "/etc/gemini-cli": Hooks}
	files := homeFiles()
	if at, known := env("HOME"); known && filepath.IsAbs(at) {
		for n, class := range files {
			names[filepath.Join(at, n)] = class
		}
	}
	for variable, usual := range HomeVariables() {
		at, known := env(variable)
		if !known || !filepath.IsAbs(at) {
			continue
		}
		for n, class := range files {
			if usual == "" {
				names[filepath.Join(at, n)] = class
			} else if below, is := strings.CutPrefix(n, usual+"/"); is {
				names[filepath.Join(at, below)] = class
			}
		}
	}
	return names
}

// fold returns the spelling of a path that all its spellings share on a disk that ignores
// case, Unicode forms or invisible characters. Protected names are compared by it on every
// disk: a checkout elsewhere may be on such a disk.
func fold(path string) string {
	for i := range len(path) {
		if path[i] >= utf8.RuneSelf {
			visible := strings.Map(func(r rune) rune {
				if unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) {
					return -1
				}
				return r
			}, path)
			return norm.NFC.String(cases.Fold().String(norm.NFD.String(visible)))
		}
	}
	return strings.ToLower(path)
}

// isAtOrBelow reports whether a path is a directory or lies below it.
func isAtOrBelow(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

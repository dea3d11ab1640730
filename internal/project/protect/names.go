package protect

import (
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"lockkeeper/internal/agent/program"
)

const (
	gitDir = ".git"        // at any depth
	OwnDir = ".lockkeeper" // at any depth, because it makes a root of its directory
)

// ConfigFile is the configuration of a codebase, in its root.
const ConfigFile = "lockkeeper.yaml"

// HasReserved returns the first name in a path that belongs to git or to Lockkeeper in every
// directory.
func HasReserved(path string) (name string, is bool) {
	for part := range strings.SplitSeq(filepath.ToSlash(path), "/") {
		if folded := fold(part); folded == gitDir || folded == OwnDir {
			return part, true
		}
	}
	return "", false
}

// HostFiles lists the files of a project in which agents find their hooks. An agent may be
// started in any directory, so they are protected at any depth.
func HostFiles() (list []string) {
	for _, p := range program.All() {
		list = append(list, p.HookFiles...)
	}
	return list
}

// homeFiles lists the protected files in a user's home directory, with their class.
func homeFiles() map[string]Class {
	files, hooks := map[string]Class{}, agentStarters()
	for _, p := range program.All() {
		hooks = append(hooks, p.HomeFiles...)
		for _, name := range p.BesideDir {
			hooks = append(hooks, name, p.Dir+"/"+name)
		}
	}
	for _, n := range hooks {
		files[n] = Hooks
	}
	for _, kept := range []string{"access", "sessions", "tokens", "worlds"} {
		files[".local/state/lockkeeper/"+kept] = Own
	}
	return files
}

// homeVariables maps environment variables to the directory in the user's home that each
// one replaces; an empty directory means the whole home.
func homeVariables() map[string]string {
	dirs := map[string]string{"XDG_STATE_HOME": ".local/state"}
	for _, p := range program.All() {
		dirs[p.DirVariable] = p.Dir
		if p.VariableIsHome {
			dirs[p.DirVariable] = ""
		}
	}
	return dirs
}

// namesAtHome lists the protected paths in the user's home and in the system, absolute.
func namesAtHome(env func(string) (string, bool)) map[string]Class {
	names := map[string]Class{}
	for _, p := range program.All() {
		names[p.SystemDir] = Hooks
	}
	files := homeFiles()
	if at, known := env("HOME"); known && filepath.IsAbs(at) {
		for n, class := range files {
			names[filepath.Join(at, n)] = class
		}
	}
	for variable, usual := range homeVariables() {
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

// fold maps all spellings of a path that are equal on some disk to one: it ignores case,
// Unicode forms and invisible characters. Protected names are compared folded on every
// disk, because another checkout may be on a disk that ignores these differences.
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

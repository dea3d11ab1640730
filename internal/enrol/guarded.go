package enrol

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"lockkeeper/internal/config"
)

// guardedNames are the files and directories by which the hosts and Lockkeeper itself are
// told whether hooks run. A host looks for its own in the directory where it is started,
// in the user's, and in the system's.
func guardedNames() (project, home, system []string) {
	project = []string{".claude/settings.json", ".claude/settings.local.json",
		".codex/hooks.json", ".codex/config.toml", ".gemini/settings.json"}
	home = append([]string{".gemini/trustedFolders.json", ".claude/plugins"}, project...)
	for _, kept := range []string{"access", "sessions", "tokens", "worlds"} { // what Lockkeeper remembers of this user
		home = append(home, ".local/state/lockkeeper/"+kept)
	}
	system = []string{"/etc/claude-code", "/etc/codex", "/etc/gemini-cli"}
	return project, home, system
}

// ownDir is where Lockkeeper keeps its own. It is guarded in any directory of a codebase: it
// makes a root of one.
const ownDir = ".lockkeeper"

// Configured lists which of the files that say whether agents are checked are in a codebase.
func Configured(root string) (list []string) {
	project, _, _ := guardedNames()
	for _, n := range append([]string{config.FileName}, project...) {
		if _, err := os.Lstat(filepath.Join(root, n)); err == nil {
			list = append(list, n)
		}
	}
	return list
}

// homes are variables that move a directory of a host's, or of all programs, out of the
// user's home.
func homes() map[string]string {
	return map[string]string{"XDG_STATE_HOME": ".local/state", "CLAUDE_CONFIG_DIR": ".claude", "CODEX_HOME": ".codex", "GEMINI_CLI_HOME": ""}
}

// Guards reports whether a file, given absolute, is one by which hooks or Lockkeeper itself
// are configured: in the codebase with this root (empty: none), the user's home or the
// system, whether it is there or not, by whatever links it is spelled. Agents never write
// such a file; a person may.
func Guards(root, file string, env func(string) (string, bool)) bool {
	return guards(root, file, env, isAtOrBelow)
}

// GuardsBelow reports whether a directory, given absolute, is or holds such a file, or
// would: who removes it, moves it or puts a link in its place does it to the file as well.
func GuardsBelow(root, dir string, env func(string) (string, bool)) bool {
	return guards(root, dir, env, func(file, name string) bool { return isAtOrBelow(file, name) || isAtOrBelow(name, file) })
}

func isAtOrBelow(file, dir string) bool {
	return file == dir || strings.HasPrefix(file, strings.TrimSuffix(dir, "/")+"/")
}

func guards(root, file string, env func(string) (string, bool), meets func(file, name string) bool) bool {
	// The name itself counts, past links of directories alone, as well as where it leads.
	spelled := []string{filepath.Join(Real(filepath.Dir(file)), filepath.Base(file)), Real(file)}
	project, home, names := guardedNames()
	if root != "" {
		root = Real(root)
		for _, n := range append([]string{config.FileName, ownDir}, project...) {
			names = append(names, filepath.Join(root, n))
		}
		for _, s := range spelled { // a host may be started in any directory of the codebase
			if isAtOrBelow(s, root) && strings.Contains(s+"/", "/"+ownDir+"/") {
				return true
			}
			for _, n := range project {
				at := strings.LastIndex(s+"/", "/"+filepath.Dir(n)+"/")
				if at >= 0 && isAtOrBelow(s, root) && meets(s, s[:at+1]+n) {
					return true
				}
			}
		}
	}
	if at, known := env("HOME"); known && filepath.IsAbs(at) {
		for _, n := range home {
			names = append(names, filepath.Join(at, n))
		}
	}
	for variable, usual := range homes() {
		at, known := env(variable)
		if !known || !filepath.IsAbs(at) {
			continue
		}
		for _, n := range home {
			if usual == "" {
				names = append(names, filepath.Join(at, n))
			} else if below, is := strings.CutPrefix(n, usual+"/"); is {
				names = append(names, filepath.Join(at, below))
			}
		}
	}
	for _, n := range names {
		real := Real(n)
		for _, s := range spelled {
			if meets(s, n) || meets(s, real) {
				return true
			}
		}
	}
	return false
}

// Real is where the kernel finds a file, given absolute: past every link, of which ".."
// leads on from where it leads to. What is not there, or cannot be seen, is taken as it is
// spelled.
func Real(file string) string {
	const most = 255 // links, as many as any kernel follows
	rest := strings.Split(file, "/")
	at, links := "/", 0
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, part)
		info, err := os.Lstat(next)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			at = next
			continue
		}
		to, err := os.Readlink(next)
		if links++; err != nil || links > most {
			at = next
			continue
		}
		if filepath.IsAbs(to) {
			at = "/"
		}
		rest = append(strings.Split(to, "/"), rest...)
	}
	return at
}

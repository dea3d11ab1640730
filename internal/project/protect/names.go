package protect

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"lockkeeper/internal/agent/program"
)

const (
	gitDir = ".git"        // protected at any depth of the tree
	OwnDir = ".lockkeeper" // protected at any depth, because this directory makes a root of its parent
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

// Real resolves an absolute path as the kernel does: it follows every link, and ".." means
// the parent of the link's target. Parts that do not exist or cannot be read stay as they
// are.
func Real(file string) string {
	const most = 255 // as many links as any kernel follows
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

// starters lists files and directories of a project that make agents, editors, shells or git hooks
// start programs although no person invokes the file. It also lists those that make them stop
// asking before they start programs. An agent or an editor may be started in any directory, so
// these files are protected at any depth.
//
// Files that only take effect when they are invoked, such as commands, skills and
// instructions, are not in the list: a lock and a review are enough for them.
func starters() []string {
	list := agentStarters()
	list = append(list, // files that editors read
		".idea", ".vs", ".helix", ".devcontainer", ".devcontainer.json", ".dir-locals.el", ".exrc", ".nvim.lua", ".nvimrc", ".vimrc")
	list = append(list, // files that shells read when a person enters the directory
		".envrc", "mise.toml", "mise.local.toml", ".mise.toml", ".mise.local.toml", ".mise/config.toml", "mise/config.toml", ".config/mise.toml", ".config/mise")
	list = append(list, // files that hook managers of git read, whose hooks are in .git
		".husky", ".githooks", ".git-hooks", ".lefthook", ".lefthook-local", ".overcommit.yml", ".pre-commit-config.yaml", ".pre-commit-config.yml", "prek.toml")
	for _, name := range []string{"lefthook", ".lefthook", ".config/lefthook", "lefthook-local", ".lefthook-local", ".config/lefthook-local"} {
		for _, format := range []string{".yml", ".yaml", ".toml", ".json", ".jsonc"} {
			list = append(list, name+format)
		}
	}
	return list
}

// agentStarters lists the starters that agents and editors read in the user's home as well.
func agentStarters() []string {
	list := HostFiles()
	for _, p := range program.All() {
		list = append(list, p.ProjectFiles...)
	}
	return append(list,
		".cursor/mcp.json", ".cursor/hooks.json", ".cursor/hooks", ".cursor/cli.json", ".cursor/environment.json", ".cursor/permissions.json", ".cursor/sandbox.json", ".cursor/worktrees.json",
		".vscode/tasks.json", ".vscode/settings.json", ".vscode/mcp.json",
		".zed/settings.json", ".zed/tasks.json",
		".aider.conf.yml", ".aider.conf.yaml",
		".continue/config.json", ".continue/config.yaml", ".continue/config.ts", ".continue/mcpServers", ".continuerc.json",
		".windsurf/hooks.json", ".windsurf/hooks", ".windsurf/mcp_config.json", ".codeium/windsurf/hooks.json", ".codeium/windsurf/mcp_config.json",
		".github/hooks", ".copilot/mcp-config.json", ".copilot/hooks", ".copilot/config.json",
		".clinerules/hooks", ".roo/mcp.json", ".kilocode/mcp.json", ".kiro/settings", ".kiro/hooks", ".amazonq/mcp.json", ".amazonq/default.json",
		".qwen/settings.json", ".qwen/hooks", ".qwen/extensions", ".qwen/.env", ".trae/mcp.json", ".junie/mcp", ".augment/settings.json",
		".factory/settings.json", ".factory/settings.local.json", ".factory/mcp.json", ".factory/hooks", "crush.json", ".crush.json")
}

// starterEndings lists the endings of names under which editors find settings and tasks in any
// directory.
func starterEndings() []string { return []string{".code-workspace", ".sublime-project"} }

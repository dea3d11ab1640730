package hook

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// isHarmlessGit reports whether a git subcommand with these options changes no file of the work
// tree and runs no other program.
func isHarmlessGit(act string, args []string) bool {
	first := ""
	if len(args) > 0 {
		first = args[0]
	}
	switch act {
	case "stash", "worktree", "reflog", "remote", "config": // only these subcommands are harmless
		known := map[string][]string{"stash": {"list", "show"}, "worktree": {"list"}, "reflog": {"", "show"}, "remote": {"", "-v", "show", "get-url"},
			"config": {"--get", "--get-all", "--list", "-l", "get", "list"}}
		if !slices.Contains(known[act], first) {
			return false
		}
	}
	options, known := harmless()["git/"+act]
	operands, ok := options.operands(args)
	switch act {
	case "rm":
		return ok && slices.Contains(args, "--cached")
	case "ls-remote", "fetch": // a transport such as ext:: runs a program
		return ok && !strings.Contains(strings.Join(operands, " "), "::")
	}
	return known && ok
}

// isPlainRepository reports whether the configuration in the repository around a directory
// names no program: git status runs core.fsmonitor, and git diff runs diff.external. Agents
// cannot write the settings of the user and the machine, so it ignores those.
func isPlainRepository(dir string) bool {
	for ; ; dir = filepath.Dir(dir) {
		at := filepath.Join(dir, ".git")
		if isThere(filepath.Join(dir, "HEAD")) && isThere(filepath.Join(dir, "objects")) { // the directory is a bare repository
			at = dir
		}
		if text := contentOf(at); text != "" { // a linked work tree has a file here
			linked, _ := strings.CutPrefix(strings.TrimSpace(text), "gitdir: ")
			at = absolute(dir, linked)
			if common := strings.TrimSpace(contentOf(filepath.Join(at, "commondir"))); common != "" {
				at = absolute(at, common)
			}
		}
		if isThere(at) {
			return isPlainConfig(filepath.Join(at, "config")) && isPlainConfig(filepath.Join(at, "config.worktree"))
		}
		if dir == filepath.Dir(dir) {
			return true
		}
	}
}

// isPlainConfig reports whether a file sets only keys that are known to name no program. A
// missing file sets nothing.
func isPlainConfig(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return os.IsNotExist(err)
	}
	defer f.Close()
	section, lines := "", bufio.NewScanner(f)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "[") {
			head, after, closed := strings.Cut(line[1:], "]")
			if !closed {
				return false
			}
			section, _, _ = strings.Cut(strings.ToLower(head), " ")
			line = strings.TrimSpace(after)
		}
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		key = strings.TrimSpace(strings.ToLower(key))
		if strings.HasSuffix(line, `\`) || !isPlainKey(section, key, strings.TrimSpace(value)) {
			return false
		}
	}
	return lines.Err() == nil
}

func isPlainKey(section, key, value string) bool {
	switch section {
	case "user", "color", "extensions", "rerere", "push", "pull", "advice":
		return true
	case "init":
		return key == "defaultbranch"
	case "lfs":
		return key == "repositoryformatversion" || key == "url"
	case "core":
		return slices.Contains(strings.Fields("repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks autocrlf eol safecrlf quotepath untrackedcache longpaths"), key) ||
			key == "fsmonitor" && (value == "true" || value == "false")
	case "remote":
		return slices.Contains([]string{"url", "pushurl", "fetch", "push", "tagopt", "prune", "promisor", "partialclonefilter", "gh-resolved"}, key)
	case "branch":
		return slices.Contains([]string{"remote", "merge", "rebase", "description", "pushremote", "vscode-merge-base", "gh-merge-base"}, key)
	case "submodule":
		return key == "url" || key == "active" || key == "branch"
	case "fetch":
		return key == "prune" || key == "prunetags"
	case "commit", "tag":
		return key == "gpgsign"
	case "merge":
		return key == "conflictstyle" || key == "ff"
	case "gc":
		return key == "auto"
	}
	return false
}

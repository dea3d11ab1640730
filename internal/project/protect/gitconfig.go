package protect

import (
	"io"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
)

// gitFacts holds the settings of one git configuration file that decide what is protected.
type gitFacts struct {
	hooks    []string // values of core.hooksPath
	includes []string // values of include.path and includeIf.*.path
}

// gitSettings collects the gitFacts of a configuration file and the files it includes.
type gitSettings struct {
	files []string // the configuration file and the files that it includes
	hooks []string // values of core.hooksPath
}

// settings lists the names that a configuration file and its included files protect. It follows
// includes whatever their conditions are, because protecting too much is safe. Relative
// hook paths start at the work tree.
func (g *gitChecker) settings(file, work string) []name {
	var s gitSettings
	g.follow(&s, file, 0)
	return g.protected(s, work)
}

// inherited lists the names that the configuration of the user, the system and the environment
// protects in a work tree.
func (g *gitChecker) inherited(work string) []name {
	if !g.read {
		g.read = true
		for _, file := range g.userFiles() {
			g.follow(&g.inherent, file, 0)
		}
		count, _ := g.env("GIT_CONFIG_COUNT")
		n, _ := strconv.Atoi(count) // 0 if the text is not a number
		for i := range min(n, 1000) {
			key, _ := g.env("GIT_CONFIG_KEY_" + strconv.Itoa(i))
			value, _ := g.env("GIT_CONFIG_VALUE_" + strconv.Itoa(i))
			if strings.EqualFold(key, "core.hookspath") {
				g.inherent.hooks = append(g.inherent.hooks, value)
			}
		}
	}
	return g.protected(g.inherent, work)
}

// userFiles lists the files in which git looks for the settings of a user and the system.
func (g *gitChecker) userFiles() (list []string) {
	set := func(variable string) string {
		value, _ := g.env(variable)
		return value
	}
	list = []string{"/etc/gitconfig", "/usr/local/etc/gitconfig", "/opt/homebrew/etc/gitconfig"}
	if at := set("GIT_CONFIG_SYSTEM"); at != "" {
		list = []string{at}
	}
	if at := set("GIT_CONFIG_GLOBAL"); at != "" {
		return append(list, at)
	}
	home := set("HOME")
	if at := set("XDG_CONFIG_HOME"); at != "" {
		list = append(list, filepath.Join(at, "git/config"))
	} else if home != "" {
		list = append(list, filepath.Join(home, ".config/git/config"))
	}
	if home != "" {
		list = append(list, filepath.Join(home, ".gitconfig"))
	}
	return list
}

// follow adds a file and the files that it includes.
func (g *gitChecker) follow(s *gitSettings, file string, depth int) {
	const deepest = 10 // git follows includes to this depth
	if depth > deepest {
		return
	}
	facts, known := g.files[file]
	if !known {
		text, _ := readSmall(file) // an unreadable file has no settings for git either
		facts = parseGitConfig(string(text))
		g.files[file] = facts
	}
	s.files = append(s.files, file)
	s.hooks = append(s.hooks, facts.hooks...)
	for _, include := range facts.includes {
		if at := absoluteFrom(filepath.Dir(file), g.expand(include)); at != "" {
			g.follow(s, at, depth+1)
		}
	}
}

// protected lists the names that settings protect in a work tree. An empty work means a
// repository without one.
func (g *gitChecker) protected(s gitSettings, work string) (list []name) {
	for _, file := range s.files {
		if isAtOrBelow(Real(file), g.root) { // outside the codebase, configuration files belong to the user
			list = append(list, name{file, Git})
		}
	}
	for _, value := range s.hooks {
		dir := g.expand(value)
		if !filepath.IsAbs(dir) {
			if work == "" || value == "" {
				continue
			}
			dir = filepath.Join(work, dir)
		}
		list = append(list, g.hookDir(dir)...)
	}
	return list
}

// hookDir lists the names to protect for a directory of hooks. Hook managers use a directory
// called "_" for scripts that only call those in the directory above it, so that one is
// protected, too.
func (g *gitChecker) hookDir(dir string) (list []name) {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil // a device such as /dev/null switches hooks off
	}
	if filepath.Base(dir) == "_" {
		list = g.hookDir(filepath.Dir(dir))
	}
	if !isAtOrBelow(g.root, Real(dir)) {
		return append(list, name{dir, Hooks})
	}
	for _, hook := range hookNames() { // the directory holds the whole codebase
		list = append(list, name{filepath.Join(dir, hook), Hooks})
	}
	return list
}

func hookNames() []string {
	return []string{"applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "pre-merge-commit", "prepare-commit-msg", "commit-msg", "post-commit", "pre-rebase", "post-checkout",
		"post-merge", "pre-push", "pre-receive", "update", "proc-receive", "post-receive", "post-update", "reference-transaction", "push-to-checkout", "pre-auto-gc", "post-rewrite",
		"sendemail-validate", "fsmonitor-watchman", "p4-changelist", "p4-prepare-changelist", "p4-post-changelist", "p4-pre-submit", "post-index-change"}
}

// expand resolves a home directory at the start of a path, or returns "" if it is unknown.
func (g *gitChecker) expand(path string) string {
	rest, home := strings.CutPrefix(path, "~")
	if !home {
		return path
	}
	name, below, _ := strings.Cut(rest, "/")
	at, _ := g.env("HOME")
	if name != "" {
		u, err := user.Lookup(name)
		if err != nil {
			return ""
		}
		at = u.HomeDir
	}
	if at == "" {
		return ""
	}
	return filepath.Join(at, below)
}

// readSmall reads a regular file up to a size that no configuration reaches.
func readSmall(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, os.ErrInvalid
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 4<<20))
}

// parseGitConfig returns the facts of a configuration file. It skips lines that git would
// refuse.
func parseGitConfig(text string) (facts gitFacts) {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\\\n", "")
	section := ""
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			head, rest, _ := strings.Cut(line[1:], "]")
			if quoted := strings.Index(head, `"`); quoted >= 0 { // the name of a subsection may have a bracket
				if end := strings.LastIndex(line, `"]`); end >= 0 {
					head, rest = line[1:end+1], line[end+2:]
				}
			}
			section, _, _ = strings.Cut(head, " ")
			section, line = strings.ToLower(strings.TrimSpace(section)), strings.TrimSpace(rest)
		}
		key, value, _ := strings.Cut(line, "=")
		switch section + "." + strings.ToLower(strings.TrimSpace(key)) {
		case "core.hookspath":
			facts.hooks = append(facts.hooks, unquote(value))
		case "include.path", "includeif.path":
			facts.includes = append(facts.includes, unquote(value))
		}
	}
	return facts
}

// unquote returns the value that git reads: without comments, quotes and escapes.
func unquote(value string) string {
	var b strings.Builder
	quoted := false
	value = strings.TrimSpace(value)
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && i+1 < len(value):
			i++
			b.WriteByte(value[i])
		case (c == '#' || c == ';') && !quoted:
			return strings.TrimSpace(b.String())
		default:
			b.WriteByte(c)
		}
	}
	return strings.TrimSpace(b.String())
}

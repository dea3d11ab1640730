package hook

import (
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A command is harmless if every part of it only reads, only creates files, or removes and
// replaces exactly the files that it names, which are checked before it runs. Any other
// command is opaque, and needs a snapshot of uncommitted files. An opaque command sweeps if
// it certainly removes or replaces files and does not name them.

// anywhere is the directory of a sweep that may reach any file.
const anywhere = "/"

// opaque notes that the effect of a part of the command on files is unknown.
func (r *reader) opaque() { r.plan.Opaque = true }

// sweeps notes that a part of the command removes or replaces files that it does not name.
func (r *reader) sweeps(act string) {
	r.plan.Opaque = true
	dirs := r.within
	if len(dirs) == 0 {
		dirs = []string{anywhere}
	}
	for _, dir := range dirs {
		r.plan.Sweeps = append(r.plan.Sweeps, Sweep{Act: act, Dir: dir})
	}
}

// A Sweep is a part of a command that removes or replaces unknown files below a directory.
type Sweep struct {
	Act string // as a refusal names it, such as "find -delete"
	Dir string // absolute
}

// steer makes the command opaque if it sets a variable that decides which programs run.
func (r *reader) steer(a *syntax.Assign) {
	for _, prefix := range []string{"PATH", "LD_", "GIT_", "BASH_", "ENV", "PAGER", "EDITOR", "VISUAL", "LESSOPEN", "IFS"} {
		if a.Name != nil && strings.HasPrefix(a.Name.Value, prefix) {
			r.opaque()
		}
	}
}

// harmless lists programs that remove and overwrite no content, whatever their arguments
// are.
func harmless() []string {
	return []string{"ls", "cat", "nl", "bat", "batcat", "head", "tail", "less", "more", "grep", "egrep", "fgrep", "zgrep", "wc", "cut", "tr", "diff", "cmp", "comm",
		"file", "stat", "du", "df", "echo", "printf", "true", "false", "test", "[", ":", "pwd", "which", "type", "whereis", "basename", "dirname", "realpath",
		"readlink", "printenv", "id", "whoami", "uname", "ps", "free", "sleep", "wait", "jobs", "seq", "expr", "bc", "jq", "od", "hexdump", "strings", "md5sum",
		"sha1sum", "sha256sum", "sha512sum", "cksum", "column", "fold", "paste", "join", "tac", "rev", "expand", "nproc", "uptime", "tput", "clear", "history",
		"export", "unset", "read", "shift", "return", "exit", "break", "continue", "set", "umask", "ulimit", "pgrep", "lsof", "man", "cal", "date", "kill", "local",
		"mkdir", "touch", "chmod", "chown", "chgrp", "rmdir", "mktemp", "trash", "hostname", "dig", "nslookup", "ping", "apply_patch", "applypatch"}
}

// harmlessActs lists the subcommands of a program that remove and overwrite no content. An
// empty one stands for all of them.
func harmlessActs(program string) []string {
	switch program {
	case "go":
		return []string{"version", "list", "vet", "doc", "help"}
	case "npm", "pnpm", "yarn":
		return []string{"ls", "list", "view", "outdated", "why"}
	case "cargo":
		return []string{"metadata", "tree", "search"}
	case "pip", "pip3":
		return []string{"list", "show", "freeze"}
	case "docker", "podman":
		return []string{"ps", "images", "logs", "inspect"}
	case "tree", "rg", "ag":
		return []string{""}
	}
	return nil
}

// harmlessGitActs lists the subcommands of git that change no file of the work tree.
func harmlessGitActs() []string {
	return []string{"status", "log", "diff", "show", "blame", "grep", "ls-files", "ls-tree", "ls-remote", "rev-parse", "rev-list", "describe", "shortlog", "reflog", "cat-file",
		"for-each-ref", "show-ref", "remote", "branch", "tag", "config", "fetch", "add", "version", "help", "check-ignore", "check-attr", "merge-base", "name-rev", "var",
		"count-objects", "fsck", "diff-tree", "diff-files", "diff-index", "whatchanged", "range-diff", "cherry", "init"}
}

// effect notes what a simple command does to files that it does not name.
func (r *reader) effect(given string, args []string, s *syntax.Stmt) {
	name := filepath.Base(given)
	options, operands := split(args)
	unknown := slices.Contains(args, "")
	switch {
	case given == "" || strings.Contains(given, "/") && !slices.Contains([]string{"/bin", "/usr/bin", "/usr/local/bin"}, filepath.Dir(given)):
		r.opaque()
	case slices.Contains(harmless(), name), len(args) == 1 && (args[0] == "--version" || args[0] == "--help"):
	case isOwnName(given):
		if i := slices.Index(args, "--"); i >= 0 {
			r.branch(func() { r.command(args[i+1:], s) })
		}
	default:
		r.effectOf(name, args, options, operands, unknown)
	}
}

func (r *reader) effectOf(name string, args, options, operands []string, unknown bool) {
	switch name {
	case "cd", "pushd":
		if len(operands) != 1 || unknown || operands[0] == "-" {
			r.opaque() // the directory of the commands after it is unknown
		}
	case "rm", "unlink", "shred", "tee", "truncate":
		if unknown {
			r.sweeps(name)
		}
	case "curl", "wget":
		if unknown && (name == "wget" || has(options, "-o", "-O", "--output", "--remote-name", "--remote-name-all", "-K", "--config")) {
			r.opaque()
		}
	case "dd":
		if unknown {
			r.sweeps(name)
		} else if strings.Contains(strings.Join(args, " "), "notrunc") {
			r.opaque()
		}
	case "cp", "install":
		switch {
		case unknown:
			r.sweeps(name)
		case has(options, "-r", "-R", "-a", "-d", "--recursive", "--archive"), slices.ContainsFunc(operands, func(f string) bool { return isDir(absolute(r.dir, f)) && f != operands[len(operands)-1] }):
			r.opaque()
		}
	case "sort":
		if unknown || slices.ContainsFunc(valuesOf(args, "-o", "--output", "ktST"), func(f string) bool { return slices.Contains(operands, f) }) {
			r.opaque()
		}
	case "uniq":
		if len(operands) > 1 || unknown {
			r.opaque()
		}
	case "sed", "gsed":
		if !isPrinting(args) {
			r.opaque()
		}
	case "awk", "gawk", "mawk":
		if unknown || strings.ContainsAny(strings.Join(args, " "), ">|") || strings.Contains(strings.Join(args, " "), "system") || has(options, "-f", "-i", "-l", "--file", "--include") {
			r.opaque()
		}
	case "tar":
		if len(args) == 0 || !strings.HasPrefix(strings.TrimPrefix(args[0], "-"), "t") || strings.HasPrefix(args[0], "--") {
			r.opaque()
		}
	case "sh", "bash", "dash", "zsh", "ksh", "ash":
		if len(args) != 2 || args[0] != "-c" && args[0] != "-lc" || args[1] == "" {
			r.opaque()
		}
	case "eval":
		if unknown {
			r.opaque()
		}
	case "find", "git": // findEffect and gitEffect judge these
	default:
		act := ""
		if len(operands) > 0 {
			act = operands[0]
		}
		acts := harmlessActs(name)
		if !slices.Contains(acts, act) && !slices.Contains(acts, "") || has(options, "-o", "--pre", "--pager") {
			r.opaque()
		}
	}
}

// gitEffect notes what a subcommand of git does. What it discards is checked before it runs.
// Aliases, hooks and filters make it opaque.
func (r *reader) gitEffect(act string, args []string, configured bool) {
	options, operands := split(args)
	first := ""
	if len(operands) > 0 {
		first = operands[0]
	}
	known := slices.Contains(harmlessGitActs(), act) ||
		act == "stash" && (first == "list" || first == "show") || act == "worktree" && first == "list" ||
		act == "rm" && has(options, "--cached") || act == "reset" && len(options) == 0
	if !known || configured || has(options, "--output", "--ext-diff", "--open-files-in-pager", "-O") {
		r.opaque()
	}
}

// findEffect notes what find does with the files that it finds below dirs.
func (r *reader) findEffect(dirs, args []string, s *syntax.Stmt) {
	in := *r
	in.within = nil
	for _, d := range dirs {
		if d == "" {
			in.within = []string{anywhere}
			break
		}
		in.within = append(in.within, absolute(r.dir, d))
	}
	for i, a := range args {
		switch {
		case a == "":
			in.opaque()
		case a == "-delete":
			in.sweeps("find -delete")
		case strings.HasPrefix(a, "-fprint") || a == "-fls":
			in.opaque()
		case strings.HasPrefix(a, "-exec") || strings.HasPrefix(a, "-ok"):
			words := args[i+1:]
			if end := slices.IndexFunc(words, func(w string) bool { return w == ";" || w == "+" }); end >= 0 {
				words = words[:end]
			}
			in.branch(func() { in.command(blanked(words, "{}"), s) })
		}
	}
}

// blanked returns words with those that contain a placeholder replaced by "", which means an
// unknown word.
func blanked(words []string, place string) []string {
	list := slices.Clone(words)
	for i, w := range list {
		if strings.Contains(w, place) {
			list[i] = ""
		}
	}
	return list
}

// fedWords returns the words of the command that xargs runs. The names that xargs adds, or
// puts in place of a word, are unknown.
func fedWords(own, words []string) []string {
	place := "{}"
	for _, given := range valuesOf(own, "-I", "--replace", "nPLdEas") {
		place = given
	}
	if len(words) == 0 {
		return []string{"echo"}
	}
	return append(blanked(words, place), "")
}

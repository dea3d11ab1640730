package hook

import (
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A command needs a snapshot unless every part of it is known not to take away content: it
// only reads, makes something new, or removes and replaces exactly the files that it names,
// which are judged before it runs. All that is not known to be so is taken for opaque.

// anywhere stands for a command that may find its files in any directory.
const anywhere = "/"

// opaque notes that nobody knows what a part of the command does to files.
func (r *reader) opaque() { r.plan.Opaque = true }

// sweeps notes that a part of the command removes or replaces files, and that nobody knows
// which ones.
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

// Sweep is an act that removes or replaces files below a directory, absolute.
type Sweep struct {
	Act string
	Dir string
}

// steer notes a variable that decides which programs run.
func (r *reader) steer(a *syntax.Assign) {
	for _, prefix := range []string{"PATH", "LD_", "GIT_", "BASH_", "ENV", "PAGER", "EDITOR", "VISUAL", "LESSOPEN", "IFS"} {
		if a.Name != nil && strings.HasPrefix(a.Name.Value, prefix) {
			r.opaque()
		}
	}
}

// readers are programs that only read, whatever their words are.
func readers() []string {
	return []string{"ls", "cat", "nl", "bat", "batcat", "head", "tail", "less", "more", "grep", "egrep", "fgrep", "zgrep", "wc", "cut", "tr", "diff", "cmp", "comm",
		"file", "stat", "du", "df", "echo", "printf", "true", "false", "test", "[", ":", "pwd", "which", "type", "whereis", "basename", "dirname", "realpath",
		"readlink", "printenv", "id", "whoami", "uname", "ps", "free", "sleep", "wait", "jobs", "seq", "expr", "bc", "jq", "od", "hexdump", "strings", "md5sum",
		"sha1sum", "sha256sum", "sha512sum", "cksum", "column", "fold", "paste", "join", "tac", "rev", "expand", "nproc", "uptime", "tput", "clear", "history",
		"export", "unset", "read", "shift", "return", "exit", "break", "continue", "set", "umask", "ulimit", "pgrep", "lsof", "man", "cal", "date", "kill", "local",
		"mkdir", "touch", "chmod", "chown", "chgrp", "rmdir", "mktemp", "trash", "hostname", "dig", "nslookup", "ping", "apply_patch", "applypatch"}
}

// looks are acts of other programs that only read.
func looks(program string) []string {
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

// gitLooks are acts of git that change no file of the work tree.
func gitLooks() []string {
	return []string{"status", "log", "diff", "show", "blame", "grep", "ls-files", "ls-tree", "ls-remote", "rev-parse", "rev-list", "describe", "shortlog", "reflog", "cat-file",
		"for-each-ref", "show-ref", "remote", "branch", "tag", "config", "fetch", "add", "version", "help", "check-ignore", "check-attr", "merge-base", "name-rev", "var",
		"count-objects", "fsck", "diff-tree", "diff-files", "diff-index", "whatchanged", "range-diff", "cherry", "init"}
}

// effect notes what a command does to files that it does not name.
func (r *reader) effect(given string, args []string, s *syntax.Stmt) {
	name := filepath.Base(given)
	options, operands := split(args)
	unknown := slices.Contains(args, "")
	switch {
	case given == "" || strings.Contains(given, "/") && !slices.Contains([]string{"/bin", "/usr/bin", "/usr/local/bin"}, filepath.Dir(given)):
		r.opaque()
	case slices.Contains(readers(), name), len(args) == 1 && (args[0] == "--version" || args[0] == "--help"):
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
			r.opaque() // from here on it is not known where it is
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
	case "find", "git": // which say so themselves
	default:
		act := ""
		if len(operands) > 0 {
			act = operands[0]
		}
		acts := looks(name)
		if !slices.Contains(acts, act) && !slices.Contains(acts, "") || has(options, "-o", "--pre", "--pager") {
			r.opaque()
		}
	}
}

// gitEffect notes what an act of git does. What it discards is judged before it runs; what
// aliases, hooks and filters do is not known.
func (r *reader) gitEffect(act string, args []string, configured bool) {
	options, operands := split(args)
	first := ""
	if len(operands) > 0 {
		first = operands[0]
	}
	looks := slices.Contains(gitLooks(), act) ||
		act == "stash" && (first == "list" || first == "show") || act == "worktree" && first == "list" ||
		act == "rm" && has(options, "--cached") || act == "reset" && len(options) == 0
	if !looks || configured || has(options, "--output", "--ext-diff", "--open-files-in-pager", "-O") {
		r.opaque()
	}
}

// findEffect notes what find does with what it finds, which is below its first words.
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

// blanked is words without what stands in the place of a name that is not known.
func blanked(words []string, place string) []string {
	list := slices.Clone(words)
	for i, w := range list {
		if strings.Contains(w, place) {
			list[i] = ""
		}
	}
	return list
}

// fedWords is the words of the command that xargs runs: it adds names that it reads, or puts
// them in the place of a word.
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

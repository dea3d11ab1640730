package hook

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"mvdan.cc/sh/v3/syntax"

	"lockkeeper/internal/enrol"
)

const (
	ownProgram = "lockkeeper"
	ownHook    = "lockkeeper-hook"
)

// reserved are the acts of this program that an agent's shell may not do, by the words
// that spell them. Others may stand between: the values of options look like words.
func reserved() [][]string {
	return [][]string{{"off"}, {"hook"}, {"lock", "clear"}, {"lock", "force-release"}, {"lock", "release"}, {"init", "--undo"}}
}

// runners are programs, beside the prefixes, that run another one which is spelled
// somewhere among their words, be it as one text.
func runners() []string {
	return []string{"script", "su", "runuser", "flock", "watch", "parallel", "ssh", "tmux", "screen", "unshare", "nsenter", "chroot", "setpriv",
		"systemd-run", "strace", "ltrace", "gdb", "unbuffer", "expect", "bwrap", "find", "fd", "entr", "at", "start-stop-daemon"}
}

// own refuses what only a person may do with this program, however it is started.
func (r *reader) own(args []string, s *syntax.Stmt) {
	if len(args) == 0 {
		return
	}
	if r.isOwn(args[0]) {
		r.reserve(args)
		return
	}
	name := filepath.Base(args[0])
	_, runs := prefixes[name]
	if !runs && !slices.Contains(runners(), name) {
		return
	}
	var words []string
	for _, a := range args[1:] {
		if fields := wordsOf(a); len(fields) > 0 {
			words = append(words, fields...)
		} else {
			words = append(words, "") // not known, and one word all the same
		}
	}
	at := slices.IndexFunc(words, r.isOwn)
	if at < 0 {
		return
	}
	words = words[at:]
	if name == "xargs" || name == "parallel" { // which add words that they are fed
		more := wordsOf(fed(s))
		if len(more) == 0 {
			more = []string{""}
		}
		words = append(words, more...)
	}
	r.reserve(words)
}

// program refuses the same in a program of another language, where that starts programs.
func (r *reader) program(text string) {
	if !slices.ContainsFunc([]string{"system", "subprocess", "exec", "spawn", "popen", "`"}, func(sign string) bool { return strings.Contains(text, sign) }) {
		return
	}
	words := wordsOf(text)
	for i, w := range words {
		if base := filepath.Base(w); base == ownProgram || base == ownHook {
			r.reserve(words[i:min(len(words), i+8)])
		}
	}
}

// wordsOf is text cut where a shell, or a list in another language, would cut it.
func wordsOf(text string) []string {
	return strings.FieldsFunc(text, func(c rune) bool { return unicode.IsSpace(c) || strings.ContainsRune("'\"`,;()[]{}|&<>\\", c) })
}

// reserve notes a command of this program that is reserved, or may be: its first words are
// not known. What follows a -- is another program's.
func (r *reader) reserve(words []string) {
	program, rest := words[0], words[1:]
	if i := slices.Index(rest, "--"); i >= 0 {
		if r.depth < maxDepth {
			r.inner(func(in *reader) { in.own(rest[i+1:], &syntax.Stmt{}) })
		}
		rest = rest[:i]
	}
	var acts []string // without what may be the value of an option
	for i, w := range rest {
		if !strings.HasPrefix(w, "-") && (w != "" || i == 0 || !strings.HasPrefix(rest[i-1], "-")) {
			acts = append(acts, w)
		}
	}
	unknown := len(acts) > 0 && (acts[0] == "" || acts[0] == "lock" && len(acts) > 1 && acts[1] == "")
	is := func(act []string) bool {
		for _, w := range rest {
			if len(act) > 0 && (w == act[0] || strings.HasPrefix(w, act[0]+"=")) {
				act = act[1:]
			}
		}
		return len(act) == 0
	}
	if len(acts) > 0 && acts[0] == "help" {
		return
	}
	if unknown || r.resolves(program, ownHook) || slices.ContainsFunc(reserved(), is) {
		r.plan.Reserved = strings.Join(append([]string{ownProgram}, rest...), " ")
	}
}

// isOwn reports whether a word starts this program: by one of its names, or by a link.
func (r *reader) isOwn(word string) bool {
	return r.resolves(word, ownProgram) || r.resolves(word, ownHook)
}

// resolves reports whether a word in the place of a program is one of that name.
func (r *reader) resolves(word, name string) bool {
	switch {
	case word == "" || strings.HasPrefix(word, "-"):
		return false
	case filepath.Base(word) == name:
		return true
	case strings.Contains(word, "/"):
		return filepath.Base(enrol.Real(absolute(r.dir, word))) == name
	}
	path, _ := r.env("PATH")
	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, word)
		if _, err := os.Lstat(file); err == nil {
			return filepath.Base(enrol.Real(file)) == name
		}
	}
	return false
}

package hook

import (
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"mvdan.cc/sh/v3/syntax"

	"lockkeeper/internal/project/protect"
)

const (
	ownProgram = "lockkeeper"
	ownHook    = "lockkeeper-hook"
)

// reserved returns the commands of this program that an agent's shell may not run, as lists of
// words. Other words may stand between them, because option values look like words.
func reserved() [][]string {
	return [][]string{{"off"}, {"hook"}, {"lock", "clear"}, {"lock", "force-release"}, {"lock", "release"}, {"init", "--undo"}}
}

// runners returns programs, in addition to the prefixes, that run another program named anywhere
// in their arguments.
func runners() []string {
	return strings.Fields("script su runuser flock watch parallel tmux screen unshare nsenter chroot setpriv systemd-run strace ltrace unbuffer bwrap entr fakeroot faketime eatmydata chronic rlwrap " +
		"xvfb-run dbus-run-session caffeinate gosu hyperfine nix-shell")
}

// otherRunners returns programs that run another program under a condition, or on another machine.
func otherRunners() []string {
	return []string{"ssh", "gdb", "expect", "find", "fd", "at", "start-stop-daemon"}
}

// own refuses commands of this program that only a person may run, even if another program starts them.
func (r *reader) own(args []string, s *syntax.Stmt) {
	if len(args) == 0 {
		return
	}
	name, words := filepath.Base(args[0]), args
	if _, runs := prefixes[name]; runs || slices.Contains(runners(), name) || slices.Contains(otherRunners(), name) {
		words = nil
		for _, a := range args[1:] {
			words = append(words, wordsOf(a)...)
		}
		if name == "xargs" || name == "parallel" { // these programs append words from standard input
			words = append(words, wordsOf(r.fed(s))...)
		}
	} else if !r.isOwn(args[0]) {
		return
	}
	if at := slices.IndexFunc(words, r.isOwn); at >= 0 {
		r.reserve(words[at:])
	}
}

// program refuses reserved commands in source text of another language if that text starts programs.
func (r *reader) program(text string) {
	if !slices.ContainsFunc([]string{"system", "subprocess", "exec", "spawn", "popen", "`"}, func(sign string) bool { return strings.Contains(text, sign) }) {
		return
	}
	words := wordsOf(text)
	for i, w := range words {
		if isOwnName(w) {
			r.reserve(words[i:min(len(words), i+8)])
		}
	}
}

// wordsOf splits text as a shell or a list in another language would. Empty text, which is
// unknown, yields one empty word.
func wordsOf(text string) []string {
	words := strings.FieldsFunc(text, func(c rune) bool { return unicode.IsSpace(c) || strings.ContainsRune("'\"`,;()[]{}|&<>\\", c) })
	if len(words) == 0 {
		return []string{""}
	}
	return words
}

// reserve notes a reserved command of this program, or one whose first words are unknown and
// may be reserved. Words after -- belong to another program.
func (r *reader) reserve(words []string) {
	program, rest := words[0], words[1:]
	if i := slices.Index(rest, "--"); i >= 0 {
		if r.depth < maxDepth {
			r.inner(func(in *reader) { in.own(rest[i+1:], &syntax.Stmt{}) })
		}
		rest = rest[:i]
	}
	var acts []string // words that are certainly no option values
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
	isHook := filepath.Base(program) == ownHook || filepath.Base(r.starts(program)) == ownHook
	if unknown || isHook || slices.ContainsFunc(reserved(), is) {
		r.plan.Reserved = strings.Join(append([]string{ownProgram}, rest...), " ")
	}
}

// isOwn reports whether a word starts this program: by one of its names, or by a link.
func (r *reader) isOwn(word string) bool { return isOwnName(word) || isOwnName(r.starts(word)) }

func isOwnName(file string) bool {
	base := filepath.Base(file)
	return base == ownProgram || base == ownHook
}

// starts returns the program file that a command word names, with links resolved, or the word
// itself if there is no such file.
func (r *reader) starts(word string) string {
	if strings.Contains(word, "/") {
		return protect.Real(absolute(r.dir, word))
	}
	path, _ := r.env("PATH")
	for _, dir := range filepath.SplitList(path) {
		if file := filepath.Join(dir, word); word != "" && word[0] != '-' && isThere(file) {
			return protect.Real(file)
		}
	}
	return word
}

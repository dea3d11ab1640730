package session

import (
	"path"
	"slices"
	"strings"
)

// readers only read what they are given. That one of them names a file says nothing about
// who wrote it.
var readers = []string{"cat", "cmp", "cut", "diff", "du", "egrep", "fgrep", "file", "grep", "head", "less", "ls", "md5sum", "more", "nl", "od", "rg", "sha256sum", "stat", "tail", "test", "wc", "xxd", "["}

// naming is the parts of a command that spell a file, and may write it.
func naming(command, p string) []string {
	parts := strings.FieldsFunc(command, func(r rune) bool { return strings.ContainsRune(";|&\n", r) })
	return slices.DeleteFunc(parts, func(part string) bool {
		words := strings.Fields(part)
		return !strings.Contains(part, path.Base(p)) || len(words) > 0 && slices.Contains(readers, words[0]) && !strings.Contains(part, ">")
	})
}

// leastSpelled is how much of a change a program must spell: that it has a word such as
// "end" in it says nothing.
const leastSpelled = 8

// spelled reports whether one of the programs that a command spells out and runs proves
// that it made a change: it writes the very file, and contains every new line
// of it; or, where nothing is left, it removes the file. What a person types meanwhile is in
// none; nor are the results of most programs, whose changes are shown and kept only. Words
// of a shell prove nothing: who waits for a person's edit spells it as well.
func spelled(programs []string, p string, was, is []byte) bool {
	return slices.ContainsFunc(programs, func(program string) bool {
		removed := is == nil
		return does(program, p, removed) && (removed || spells(program, was, is))
	})
}

// does reports whether a program removes a file, or writes it, by its name from wherever the
// program stands.
func does(program, p string, removes bool) bool {
	return slices.ContainsFunc(ActsOf(program), func(a Act) bool {
		name := path.Clean(a.File)
		for strings.HasPrefix(name, "../") {
			name = name[len("../"):]
		}
		return a.Removes == removes && (name == p || strings.HasSuffix(p, "/"+name) || strings.HasSuffix(name, "/"+p))
	})
}

// spells reports whether all lines that a file has more than before are in a program,
// each as a line of its own.
func spells(program string, was, is []byte) bool {
	known := map[string]int{}
	for line := range strings.Lines(string(was)) {
		known[strings.TrimSpace(line)]++
	}
	lines := linesOf(program)
	proven := 0
	for line := range strings.Lines(string(is)) {
		line = strings.TrimSpace(line)
		known[line]--
		switch {
		case line == "" || known[line] >= 0:
		case !lines(line):
			return false
		default:
			proven += len(line)
		}
	}
	return proven >= leastSpelled
}

// linesOf tells which lines the texts of a program have: what stands between line ends,
// also those that are written as \n, and quotes.
func linesOf(program string) func(line string) bool {
	text := strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t", `\"`, `"`, `\'`, `'`).Replace(program)
	ends := func(b byte) bool { return strings.IndexByte("\n'\"`", b) >= 0 }
	return func(line string) bool {
		for from := 0; ; {
			i := strings.Index(text[from:], line)
			if i < 0 {
				return false
			}
			before := strings.TrimRight(text[:from+i], " \t\r")
			after := strings.TrimLeft(text[from+i+len(line):], " \t\r")
			if (before == "" || ends(before[len(before)-1])) && (after == "" || ends(after[0])) {
				return true
			}
			from += i + 1
		}
	}
}

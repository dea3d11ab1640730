package session

import (
	"path"
	"slices"
	"strings"
)

// readers are programs that only read their arguments. If one of them names a file, that does
// not show who wrote the file.
var readers = []string{"cat", "cmp", "cut", "diff", "du", "egrep", "fgrep", "file", "grep", "head", "less", "ls", "md5sum", "more", "nl", "od", "rg", "sha256sum", "stat", "tail", "test", "wc", "xxd", "["}

// naming returns the parts of a command that name a file and may write it.
func naming(command, p string) []string {
	parts := strings.FieldsFunc(command, func(r rune) bool { return strings.ContainsRune(";|&\n", r) })
	return slices.DeleteFunc(parts, func(part string) bool {
		words := strings.Fields(part)
		return !strings.Contains(part, path.Base(p)) || len(words) > 0 && slices.Contains(readers, words[0]) && !strings.Contains(part, ">")
	})
}

// leastSpelled is the minimum length of changed text that source text must contain. A short word
// such as "end" proves nothing.
const leastSpelled = 8

// spelled reports whether the source text in a command proves that the command made a change.
// The text must write that file and contain every new line, or remove the file if it is gone. A
// person's concurrent edit is not in the text. Shell words prove nothing, because a command that
// waits for a person's edit contains them as well.
func spelled(programs []string, p string, was, is []byte) bool {
	return slices.ContainsFunc(programs, func(program string) bool {
		removed := is == nil
		return does(program, p, removed) && (removed || spells(program, was, is))
	})
}

// does reports whether source text removes or writes a file, by its name relative to any
// directory.
func does(program, p string, removes bool) bool {
	return slices.ContainsFunc(ActsOf(program), func(a Act) bool {
		name := path.Clean(a.File)
		for strings.HasPrefix(name, "../") {
			name = name[len("../"):]
		}
		return a.Removes == removes && (name == p || strings.HasSuffix(p, "/"+name) || strings.HasSuffix(name, "/"+p))
	})
}

// spells reports whether source text contains every added line of a file as a separate line.
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

// linesOf returns a function that reports whether a line occurs in the texts of a program. Line
// ends, \n escapes and quotes delimit lines.
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

package session

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
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

// acts are the forms in which programs write or remove a file that they spell there and
// then. Which file it is must be beside the act: a program that waits until a person has
// changed one file may well write another.
type acts struct{ writes, removes *regexp.Regexp }

var actsOf = sync.OnceValue(func() acts {
	const file, mode = `['"]([^'"\n]+)['"]`, `['"][rbt]*[wax+][bt+]*['"]`
	return acts{
		writes: regexp.MustCompile(`(?:open|File\.new)\s*\(?\s*` + file + `\s*,\s*(?:mode\s*=\s*)?` + mode +
			`|Path\s*\(\s*` + file + `\s*\)\s*\.(?:write_text|write_bytes|open\s*\(\s*` + mode + `)` +
			`|(?:writeFile|writeFileSync|appendFile|appendFileSync|createWriteStream|file_put_contents|(?:File|IO)\.write)\s*\(?\s*` + file +
			`|open\b[^;\n]*['"]\+?>>?\s*(?:['"]\s*,\s*['"])?([^'"\n]+)['"]`),
		removes: regexp.MustCompile(`\b(?:remove|unlink|unlinkSync|rm|rmSync|delete|rename|renameSync|move)\s*\(\s*` + file +
			`|Path\s*\(\s*` + file + `\s*\)\s*\.(?:unlink|rename|replace)`),
	}
})

// leastSpelled is how much of a change a program must spell: that it has a word such as
// "end" in it says nothing.
const leastSpelled = 8

// spelled reports whether one of the programs that a command spells out and runs proves
// that it made a change: it writes the very file, and all that is new stands in it line by
// line; or, where nothing is left, it removes the file. What a person types meanwhile is in
// none; nor are the results of most programs, whose changes are shown and kept only. Words
// of a shell prove nothing: who waits for a person's edit spells it as well.
func spelled(programs []string, p string, was, is []byte) bool {
	return slices.ContainsFunc(programs, func(program string) bool {
		if is == nil {
			return does(actsOf().removes, program, p)
		}
		return does(actsOf().writes, program, p) && spells(program, was, is)
	})
}

// does reports whether a program acts on a file by its name, from wherever it stands.
func does(act *regexp.Regexp, program, p string) bool {
	return slices.ContainsFunc(act.FindAllStringSubmatch(program, -1), func(m []string) bool {
		name := path.Clean(strings.Join(m[1:], "")) // of the forms, one fits
		for strings.HasPrefix(name, "../") {
			name = name[len("../"):]
		}
		return name == p || strings.HasSuffix(p, "/"+name) || strings.HasSuffix(name, "/"+p)
	})
}

// spells reports whether all lines that a file has more than before stand in a program,
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

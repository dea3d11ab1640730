package session

import (
	"path"
	"slices"
	"strings"
	"unicode"
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

// removers are words with which programs remove files, in shells and other languages.
var removers = []string{"rm", "unlink", "remove", "delete", "rename", "move"}

// leastSpelled is how much of a change a command must spell: that it has a word such as
// "end" in it says nothing.
const leastSpelled = 8

// spelled reports whether the text of a command proves that it made a change: all that is
// new stands in it, or, where nothing is left, that it removes. What a person types meanwhile
// does not; nor do the results of most programs, whose changes are shown and kept only.
func spelled(command, p string, was, is []byte) bool {
	if is == nil {
		return slices.ContainsFunc(naming(command, p), func(part string) bool {
			words := strings.FieldsFunc(part, func(r rune) bool { return !unicode.IsLetter(r) })
			return slices.ContainsFunc(words, func(word string) bool { return slices.Contains(removers, word) })
		})
	}
	known := map[string]bool{}
	for line := range strings.Lines(string(was)) {
		known[strings.TrimSpace(line)] = true
	}
	proven := 0
	for line := range strings.Lines(string(is)) {
		line = strings.TrimSpace(line)
		switch {
		case known[line]:
		case !strings.Contains(command, line):
			return false
		default:
			proven += len(line)
		}
	}
	return proven >= leastSpelled
}

package hook

import (
	"regexp"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// starting finds the commands that source text starts: as one text, as a list of words, or between
// backquotes. elsewhere matches text that may start them in another directory.
type starting struct{ text, list, word, quoted, elsewhere *regexp.Regexp }

var startingIn = sync.OnceValue(func() starting {
	const call = `\b(?:system|popen|Popen|run|call|check_call|check_output|getoutput|getstatusoutput|exec|execSync|execFile|execFileSync|spawn|spawnSync|shell_exec|passthru|proc_open)\b\s*\(?\s*`
	return starting{
		text:      regexp.MustCompile(call + "(?:\"([^\"\n]+)\"|'([^'\n]+)'|`([^`\n]+)`)"),
		list:      regexp.MustCompile(call + `\[?\s*((?:['"][^'"\n]*['"]\s*,\s*\[?\s*)+['"][^'"\n]*['"])`),
		word:      regexp.MustCompile(`['"]([^'"\n]*)['"]`),
		quoted:    regexp.MustCompile("`([^`\n]+)`"),
		elsewhere: regexp.MustCompile(`\b(?:cwd|chdir)\b`),
	}
})

// started reads the commands that source text of another language starts, as far as the text has
// their words.
func (r *reader) started(language, text string, s *syntax.Stmt) {
	in := startingIn()
	if text == "" || in.elsewhere.MatchString(text) {
		return
	}
	read := func(do func(*reader)) { r.branch(func() { r.inner(do) }) }
	for _, m := range in.list.FindAllStringSubmatch(text, -1) {
		var words []string
		for _, w := range in.word.FindAllStringSubmatch(m[1], -1) {
			words = append(words, w[1])
		}
		read(func(in *reader) { in.command(words, s) })
	}
	for _, m := range in.text.FindAllStringSubmatch(text, -1) {
		read(func(in *reader) { in.script(strings.Join(m[1:], "")) })
	}
	if language == "perl" || language == "ruby" || language == "php" {
		for _, m := range in.quoted.FindAllStringSubmatch(text, -1) {
			read(func(in *reader) { in.script(m[1]) })
		}
	}
}

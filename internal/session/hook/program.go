package hook

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"

	"lockkeeper/internal/session"
)

// hints finds possible writes in source text. quoted matches any text that could be a file name.
// joined matches two parts of a file name. reading matches the name of a file that the program only
// reads. If writing matches nothing, the program writes no file.
type hints struct{ quoted, joined, writing, reading *regexp.Regexp }

var hintsOf = sync.OnceValue(func() hints {
	return hints{
		quoted:  regexp.MustCompile(`['"]([^'"\s]{1,300})['"]`),
		joined:  regexp.MustCompile(`['"]([^'"\s]{1,300})['"](?:\)?\s*/|\s*,)\s*['"]([^'"\s]{1,300})['"]`),
		reading: regexp.MustCompile(`\b(?:(?:open|readFile|readFileSync)\(\s*['"]([^'"\s]{1,300})['"]\s*(?:\)|,\s*['"](?:r|rb|rt|utf-?8)['"])|Path\(['"]([^'"\s]{1,300})['"]\)\.read_|open\s+\w+,\s*['"]([^'"\s<>|+]{1,300})['"])`),
		writing: regexp.MustCompile(`(?i)write|unlink|remove|delete|\brm|rename|replace|truncate|copy|move|[,=:]\s*['"][rbt]*[wax+][bt+]*['"]\s*[,)}]|inplace|File\.open|>`),
	}
})

// lettersOf returns the option letters after a dash, up to the first letter that takes the rest
// of the word as its value.
func lettersOf(option string) string {
	letters := option[1:]
	if at := strings.IndexAny(letters, "CDEFIKMTWmrx"); at >= 0 {
		letters = letters[:at]
	}
	return letters
}

// interpreter reads source text on the command line or on standard input. Files that it opens
// for writing are written, and other files that it names may be.
func (r *reader) interpreter(name string, args []string, s *syntax.Stmt) {
	if at := slices.Index(args, "-m"); strings.HasPrefix(name, "python") && at >= 0 && at+1 < len(args) {
		r.rewriter(args[at+1], args[at+2:], s)
		return
	}
	text, spelled := r.fed(s), ""
	inPlace := false
	var operands []string
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case slices.Contains([]string{"-c", "-e", "--eval", "-p", "--print", "-r"}, a) && i+1 < len(args) && args[i+1] != "" && (name != "perl" || a == "-e"):
			i++
			spelled += "\n" + args[i]
		case len(a) > 1 && a[0] == '-' && a[1] != '-' && (name == "perl" || name == "ruby"):
			letters := lettersOf(a)
			inPlace = inPlace || strings.ContainsRune(letters, 'i')
			if strings.HasSuffix(letters, "e") && i+1 < len(args) {
				i++
				spelled += "\n" + args[i]
			}
		case a != "" && a[0] != '-':
			operands = append(operands, a)
		}
	}
	if inPlace {
		r.writes(false, operands...)
	}
	switch {
	case !r.certain():
	case spelled != "":
		r.plan.Programs = append(r.plan.Programs, spelled)
	case text != "" && len(operands) == 0 && !slices.Contains(args, ""): // otherwise standard input is data
		r.plan.Programs = append(r.plan.Programs, text)
	}
	if text += spelled; text == "" && len(operands) > 0 {
		text = r.texts[absolute(r.dir, operands[0])]
	}
	r.program(text)
	r.started(name, text, s)
	hints := hintsOf()
	if text == "" || !hints.writing.MatchString(text) {
		return
	}
	for _, a := range session.ActsOf(text) {
		r.writes(a.Whole, a.File)
		if a.Removes {
			r.discards(name, a.File)
		}
	}
	quoted := hints.quoted.FindAllStringSubmatch(text, -1)
	for _, m := range hints.joined.FindAllStringSubmatch(text, -1) {
		if file := m[1] + "/" + m[2]; isThere(absolute(r.dir, file)) && !isDir(absolute(r.dir, file)) { // otherwise these are two words of a list
			quoted = append(quoted, []string{"", file})
		}
	}
	times := map[string]int{}
	for _, m := range quoted {
		times[m[1]]++
	}
	for _, m := range hints.reading.FindAllStringSubmatch(text, -1) {
		times[m[1]+m[2]+m[3]]--
	}
	for _, m := range quoted {
		if times[m[1]] == 0 { // the program only reads the file
			continue
		}
		r.plan.Names = append(r.plan.Names, absolute(r.dir, m[1]))
	}
}

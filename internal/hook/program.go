package hook

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// programs are the expressions by which small programs in other languages are read. They
// are made when the first one is.
type programs struct {
	opens  *regexp.Regexp // a file that is opened to be written, or written at once
	quoted *regexp.Regexp // any text that could be the name of a file
	writes *regexp.Regexp // a sign that the program writes at all
}

var programsOf = sync.OnceValue(func() programs {
	return programs{
		opens: regexp.MustCompile(`(?:open|File\.(?:open|write)|writeFileSync|writeFile|appendFileSync|createWriteStream|file_put_contents|Path)\s*\(?\s*['"]([^'"\s]+)['"]` +
			`(?:\s*\)\s*\.(?:write_text|write_bytes|unlink|touch)|\s*,\s*(?:mode\s*=\s*)?['"][^'"]*[wax+]|\s*,)`),
		quoted: regexp.MustCompile(`['"]([^'"\s]{1,300})['"]`),
		writes: regexp.MustCompile(`(?i)write|unlink|remove|rename|replace|truncate|copy|move|['"][rbt]*[wax+][bt+]*['"]|File\.open|>`),
	}
})

// interpreter reads a program that is given on the command line or fed: the files that it
// opens to write are written, and others that it names may be.
func (r *reader) interpreter(name string, args []string, s *syntax.Stmt) {
	text, spelled := fed(s), ""
	inPlace := false
	var operands []string
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case slices.Contains([]string{"-c", "-e", "--eval", "-p", "--print", "-r"}, a) && i+1 < len(args) && args[i+1] != "" && (name != "perl" || a == "-e"):
			i++
			spelled += "\n" + args[i]
		case len(a) > 1 && a[0] == '-' && a[1] != '-' && (name == "perl" || name == "ruby"):
			inPlace = inPlace || strings.ContainsRune(a, 'i')
			if strings.HasSuffix(a, "e") && i+1 < len(args) {
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
	case text != "" && len(operands) == 0 && !slices.Contains(args, ""): // else it is the input
		r.plan.Programs = append(r.plan.Programs, text)
	}
	text += spelled
	r.program(text)
	p := programsOf()
	if text == "" || !p.writes.MatchString(text) {
		return
	}
	for _, m := range p.opens.FindAllStringSubmatch(text, -1) {
		r.writes(false, m[1])
	}
	for _, m := range p.quoted.FindAllStringSubmatch(text, -1) {
		r.plan.Names = append(r.plan.Names, absolute(r.dir, m[1]))
	}
}

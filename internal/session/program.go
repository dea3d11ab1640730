package session

import (
	"regexp"
	"strings"
	"sync"
)

// An Act is a write or removal of a file that source text in another language names literally.
type Act struct {
	File    string
	Whole   bool // the call replaces the content, and the source text does not mention the file again
	Removes bool
}

// forms are the ways to write or remove a file in Python, Node, Ruby, PHP and Perl. Each form
// includes the file name, because a program that waits for a person's change to one file may
// write another.
type forms struct {
	opens   *regexp.Regexp // groups: file, mode
	path    *regexp.Regexp // groups: file, act, mode
	writes  *regexp.Regexp // groups: act, file
	copies  *regexp.Regexp // groups: act, from, to
	removes *regexp.Regexp // group: file
	perl    *regexp.Regexp // groups: mode, file
	appends *regexp.Regexp // an option that makes a replacing write append
}

var formsOf = sync.OnceValue(func() forms {
	const file, mode = "[rbuf]{0,2}['\"`]([^'\"`\\n]+)['\"`]", `['"]([rwabtxU+]+)['"]`
	const whole = `\s*(?:[^+\s]|$)` // the text after a name that is not joined with another text
	return forms{
		opens:   regexp.MustCompile(`\b(?:open|File\.new)\s*\(?\s*` + file + `\s*,\s*(?:[^()\n]*\bmode\s*[=:]\s*)?` + mode),
		path:    regexp.MustCompile(`\bPath\s*\(\s*` + file + `\s*\)\s*\.\s*(write_text|write_bytes|touch|unlink|rename|replace|open\s*\(\s*(?:mode\s*=\s*)?` + mode + `)`),
		writes:  regexp.MustCompile(`\b(writeFile|writeFileSync|appendFile|appendFileSync|createWriteStream|writeTextFile|writeTextFileSync|file_put_contents|(?:File|IO|Bun)\.write)\s*\(?\s*` + file + whole),
		copies:  regexp.MustCompile(`\b(os\.rename|os\.replace|shutil\.(?:copy\w*|move)|rename|renameSync|copyFile|copyFileSync|FileUtils\.(?:cp|mv))\s*\(\s*` + file + `\s*,\s*` + file),
		removes: regexp.MustCompile(`\b(?:os\.remove|unlink|unlinkSync|rmSync|fs\.rm|File\.delete|FileUtils\.rm\w*|shutil\.rmtree)\s*\(?\s*` + file + whole),
		perl:    regexp.MustCompile(`\bopen\b[^;\n]*['"](\+?>>?)\s*(?:['"]\s*,\s*['"])?([^'"\n]+)['"]`),
		appends: regexp.MustCompile(`\bflags?['"]?\s*:\s*['"]a|\bFILE_APPEND\b|\bmode:\s*['"]a`),
	}
})

// ActsOf lists the literal writes and removals in source text.
func ActsOf(program string) (list []Act) {
	f := formsOf()
	write := func(file string, whole bool) {
		times := 0
		for _, quote := range []string{"'", `"`, "`"} {
			times += strings.Count(program, quote+file+quote)
		}
		list = append(list, Act{File: file, Whole: whole && times == 1})
	}
	for _, m := range f.opens.FindAllStringSubmatch(program, -1) {
		if strings.ContainsAny(m[2], "wax+") {
			write(m[1], strings.Contains(m[2], "w"))
		}
	}
	for _, m := range f.path.FindAllStringSubmatch(program, -1) {
		switch file, act := m[1], m[2]; {
		case act == "unlink" || act == "rename" || act == "replace":
			list = append(list, Act{File: file, Removes: true})
		case m[3] == "":
			write(file, act != "touch")
		case strings.ContainsAny(m[3], "wax+"):
			write(file, strings.Contains(m[3], "w"))
		}
	}
	appends := f.appends.MatchString(program)
	for _, m := range f.writes.FindAllStringSubmatch(program, -1) {
		write(m[2], !appends && !strings.HasPrefix(m[1], "append"))
	}
	for _, m := range f.copies.FindAllStringSubmatch(program, -1) {
		write(m[3], true)
		if !strings.Contains(strings.ToLower(m[1]), "cop") && !strings.HasSuffix(m[1], ".cp") {
			list = append(list, Act{File: m[2], Removes: true})
		}
	}
	for _, m := range f.removes.FindAllStringSubmatch(program, -1) {
		list = append(list, Act{File: m[1], Removes: true})
	}
	for _, m := range f.perl.FindAllStringSubmatch(program, -1) {
		write(m[2], m[1] == ">")
	}
	return list
}

package hook

import (
	"regexp"
	"strings"
	"sync"
)

// written finds the files that a script of sed or awk writes, and the commands that it runs.
type written struct{ sedFile, sedRuns, awkFile, awkRuns *regexp.Regexp }

var writtenBy = sync.OnceValue(func() written {
	return written{
		sedFile: regexp.MustCompile(`(?m)(?:^|[;{}/0-9$,\s])[gpIiMm]*[wW]\s+([^\n;}]+)`),
		sedRuns: regexp.MustCompile(`(?m)(?:^|[;{}/0-9$,\s])e\s+([^\n]+)`),
		awkFile: regexp.MustCompile(`>\s*"([^"]+)"`),
		awkRuns: regexp.MustCompile(`(?:\|\s*|system\(\s*)"([^"]+)"`),
	}
})

// sedScript notes the existing files that a script of sed may write, and the commands in it.
func (r *reader) sedScript(script string) {
	for _, m := range writtenBy().sedFile.FindAllStringSubmatch(script, -1) {
		r.mayWrite(strings.TrimSpace(m[1]))
	}
	for _, m := range writtenBy().sedRuns.FindAllStringSubmatch(script, -1) {
		r.branch(func() { r.script(m[1]) })
	}
}

// awkScript does for awk what sedScript does for sed. The script is one of the operands.
func (r *reader) awkScript(operands []string) {
	for _, script := range operands {
		for _, m := range writtenBy().awkFile.FindAllStringSubmatch(script, -1) {
			r.mayWrite(m[1])
		}
		for _, m := range writtenBy().awkRuns.FindAllStringSubmatch(script, -1) {
			r.branch(func() { r.script(m[1]) })
		}
	}
}

// tar notes the archive that tar writes, and the files that it is told to extract.
func (r *reader) tar(args []string) {
	if len(args) == 0 || args[0] == "" {
		return
	}
	if args[0][0] != '-' {
		args = append([]string{"-" + args[0]}, args[1:]...)
	}
	w := allowed("-f= -C= --file= --directory=").read(args)
	switch {
	case w.has("-c", "-r", "-u", "--create", "--append", "--update"):
		r.mayWrite(w.values("-f", "--file")...)
	case w.has("-x", "--extract", "--get"):
		r.mayWrite(w.all()...)
	}
}

// mayWrite notes existing files that the command names and may write.
func (r *reader) mayWrite(files ...string) {
	for _, f := range files {
		if at := absolute(r.dir, f); f != "" && isThere(at) && !isDir(at) {
			r.plan.Names = append(r.plan.Names, at)
		}
	}
}

package hook

import (
	_ "embed" // embeds rewriters.txt
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

//go:embed rewriters.txt
var rewritersText string

// A rewriterForm is one way to call a program that rewrites the files that it names.
type rewriterForm struct {
	first   string   // the first operand of the command, or "" for any
	options []string // the call has one of these options; empty: it has none of the options in unless
	unless  []string
	values  []string // the command writes the files that are the values of these options
	last    bool     // the command writes the last of several operands
}

// rewriters returns the lines of rewriters.txt by program.
var rewriters = sync.OnceValue(func() map[string][]rewriterForm {
	table := map[string][]rewriterForm{}
	for line := range strings.Lines(rewritersText) {
		names, rest, ok := strings.Cut(strings.TrimSpace(line), " -> ")
		if !ok || line[0] == '#' {
			continue
		}
		for name := range strings.SplitSeq(names, ", ") {
			program, first, _ := strings.Cut(name, " ")
			f := rewriterForm{first: first}
			for word := range strings.FieldsSeq(rest) {
				switch spared, no := strings.CutPrefix(word, "!"); {
				case no:
					f.unless = append(f.unless, spared)
				case word == "last":
					f.last = true
				case strings.HasSuffix(word, "="):
					f.values = append(f.values, strings.TrimSuffix(word, "="))
				case word != "always":
					f.options = append(f.options, word)
				}
			}
			table[program] = append(table[program], f)
		}
	}
	return table
})

// runnersOfPackages lists programs that run another program, such as npx, with the subcommands
// that do so. Without subcommands, the first operand is the other program.
var runnersOfPackages = map[string][]string{"npx": nil, "bunx": nil, "uvx": nil, "pnpm": {"exec", "dlx"}, "yarn": {"exec", "run"}, "npm": {"exec", "x"}, "bundle": {"exec"}, "uv": {"run"},
	"poetry": {"run"}, "pipenv": {"run"}, "pdm": {"run"}, "hatch": {"run"}, "rye": {"run"}, "pixi": {"run"}, "conda": {"run"}, "direnv": {"exec"}, "mise": {"exec", "x"}, "asdf": {"exec"}, "rbenv": {"exec"},
	"pyenv": {"exec"}, "doppler": {"run"}, "op": {"run"}}

// rewriter notes the files that a formatter, a linter or an editor may rewrite. It may leave a file
// as it is, so the files are not claimed.
func (r *reader) rewriter(name string, args []string, s *syntax.Stmt) {
	r.packages(name, args)
	if acts, runs := runnersOfPackages[name]; runs {
		w := allowed("").read(args)
		rest := slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "--" || a == "-y" || a == "--yes" })
		certainly := len(acts) == 0
		if !certainly && len(w.operands) > 0 && slices.Contains(acts, w.operands[0]) {
			certainly, rest = true, rest[slices.Index(rest, w.operands[0])+1:]
		}
		if name == "direnv" && certainly && len(rest) > 0 { // the first operand is the directory of the settings
			rest = rest[1:]
		}
		for certainly && len(rest) > 0 && strings.HasPrefix(rest[0], "-") && rest[0] != "-c" && rest[0] != "--call" {
			rest = rest[1:]
		}
		switch {
		case len(rest) == 0 || rest[0] == name:
		case certainly && len(rest) > 1 && (rest[0] == "-c" || rest[0] == "--call"):
			r.branch(func() { r.inner(func(in *reader) { in.script(rest[1]) }) })
		case certainly:
			r.branch(func() { r.inner(func(in *reader) { in.command(rest, s) }) })
		default: // the operand is a script of the package, or a program
			r.rewriter(filepath.Base(rest[0]), rest[1:], s)
		}
		return
	}
	w := allowed("").read(args)
	operands := w.all()
	given := func(names []string) bool {
		return w.has(names...) || slices.ContainsFunc(names, func(n string) bool { return slices.Contains(args, n) })
	}
	for _, f := range rewriters()[name] {
		files := operands
		if f.first != "" {
			if len(operands) == 0 || operands[0] != f.first {
				continue
			}
			files = operands[1:]
		}
		if len(f.options) > 0 && !given(f.options) || given(f.unless) {
			continue
		}
		switch {
		case len(f.values) > 0:
			files = nil
			for _, o := range f.values {
				files = append(files, valuesAfter(args, o)...)
			}
		case f.last && len(files) < 2:
			files = nil
		case f.last:
			files = files[len(files)-1:]
		}
		for _, file := range files {
			if at := absolute(r.dir, file); file != "" && isThere(at) && !isDir(at) {
				r.plan.Names = append(r.plan.Names, at)
			}
		}
		if len(f.values) == 0 {
			return
		}
	}
}

// valuesAfter returns the values of an option, which may also be a word after one dash.
func valuesAfter(args []string, name string) (list []string) {
	for i, a := range args {
		value, joined := strings.CutPrefix(a, name+"=")
		switch {
		case joined:
			list = append(list, value)
		case a == name && i+1 < len(args):
			list = append(list, args[i+1])
		case len(name) == 2 && len(a) > 2 && strings.HasPrefix(a, name):
			list = append(list, a[2:])
		}
	}
	return list
}

package hook

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// command notes the effects of a simple command with these words.
func (r *reader) command(args []string, s *syntax.Stmt) {
	r.own(args, s)
	given := args
	if len(given) > 1 && given[0] == "command" && (given[1] == "-v" || given[1] == "-V") { // command -v only prints
		return
	}
	r.steered(args)
	args = strip(args)
	r.left = r.left || leaves(given) || leaves(args)
	if len(args) == 0 {
		return
	}
	if _, prefixed := prefixes[filepath.Base(given[0])]; prefixed {
		r.behind(given, args, s)
		return
	}
	name, rest := filepath.Base(args[0]), args[1:]
	if act, is := strings.CutPrefix(name, "git-"); is && isBuiltin(act) { // in git's own directory of programs
		name, rest = "git", append([]string{act}, rest...)
	}
	w := noValues.read(rest)
	operands := w.all()
	r.settled = !r.plan.Opaque
	r.effect(args[0], rest, s)
	switch name {
	case "shift":
		r.shift(operands)
	case "set":
		if !isSet(rest) || slices.Contains(rest, "--") {
			r.params = nil
		}
	case "cd", "pushd":
		r.cd(operands)
	case "cat", "nl", "bat", "batcat", "head", "tail", "less", "more":
		r.reads(operands)
	case "tee":
		r.writes(!w.has("-a", "--append"), operands...)
	case "sponge": // sponge reads all input before it writes
		for _, f := range operands {
			r.writes(!w.has("-a") && !slices.Contains(r.fedBy, absolute(r.dir, f)), f)
		}
	case "sed", "gsed":
		r.sed(rest)
	case "perl", "ruby", "python", "python2", "python3", "node", "bun", "deno", "php":
		r.interpreter(name, rest, s)
		r.packages(name, rest)
	case "cp", "install", "mv", "ln", "rsync", "scp":
		r.copies(name, rest)
	case "rm", "unlink", "rmdir", "shred", "trash":
		r.removes(name, operands)
	case "truncate":
		r.truncate(rest)
	case "touch", "chmod", "chown", "chgrp":
		w := allowed("-d= -r= -t= --date= --reference= --from=").read(rest)
		if operands = w.all(); name != "touch" && !w.has("--reference") && len(operands) > 0 {
			operands = operands[1:] // the first operand is the mode or the owner
		}
		r.writes(false, operands...)
	case "patch":
		r.patch(rest, s)
	case "awk", "gawk", "mawk":
		r.awk(rest)
		r.awkScript(operands)
	case "dd":
		keeps := strings.Contains(strings.Join(rest, " "), "notrunc")
		for _, a := range rest {
			if file, ok := strings.CutPrefix(a, "of="); ok {
				r.writes(!keeps, file)
			}
		}
	case "sort":
		for _, f := range sortGrammar.read(rest).values("-o", "--output") {
			other := slices.Index(operands, f) + 1 // a file that occurs again is also an input
			r.writes(!slices.Contains(operands[other:], f), f)
		}
	case "curl":
		r.curl(rest)
	case "wget":
		r.writes(true, wgetGrammar.read(rest).values("-O", "--output-document")...)
	case "sh", "bash", "dash", "zsh", "ksh", "ash", "fish":
		r.shell(rest, s)
	case "source", ".":
		r.params = nil
		r.branch(func() { r.script(r.fed(s) + r.texts[absolute(r.dir, strings.Join(operands, " "))]) })
	case "trap":
		if len(operands) > 0 {
			r.branch(func() { r.script(operands[0]) })
		}
	case "eval":
		r.branch(func() { r.script(strings.Join(rest, " ")) })
	case "git":
		r.git(rest, s)
	case "apply_patch", "applypatch": // Codex runs apply_patch itself
		if list, err := patched(strings.Join(rest, "\n") + "\n" + r.fed(s)); err == nil {
			for _, t := range list {
				if r.writes(t.Whole, t.File); t.Goes {
					r.discards(name, t.File)
				}
			}
		}
	case "find":
		r.find(rest, s)
	case "tar":
		r.tar(rest)
	case "gh":
		if len(operands) > 1 && (operands[0] == "pr" && operands[1] == "checkout" || operands[0] == "repo" && operands[1] == "sync") {
			r.plan.Git = append(r.plan.Git, GitAct{Name: "gh " + operands[0] + " " + operands[1], Dir: r.dir})
		}
		r.rewriter(name, rest, s)
	default:
		if slices.Contains(runners(), name) {
			r.runs(rest, s)
			return
		}
		if text := r.texts[absolute(r.dir, args[0])]; strings.Contains(args[0], "/") && text != "" {
			r.branch(func() { r.inner(func(in *reader) { in.script(text) }) })
		}
		r.rewriter(name, rest, s)
	}
}

// runs reads the command in the words of a program that runs it: a word with spaces is a script,
// and the first word that names a program begins a command.
func (r *reader) runs(words []string, s *syntax.Stmt) {
	for i, w := range words {
		switch {
		case strings.ContainsAny(w, " \t\n"):
			r.branch(func() { r.inner(func(in *reader) { in.script(w) }) })
		case w != "" && w[0] != '-' && r.isProgram(w):
			r.branch(func() { r.inner(func(in *reader) { in.command(words[i:], s) }) })
			return
		}
	}
}

// isProgram reports whether a word names an executable file.
func (r *reader) isProgram(word string) bool {
	info, err := os.Stat(r.starts(word))
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// These grammars list the options that take a value.
const (
	sortGrammar allowed = "-o= -k= -t= -S= -T= --output="
	wgetGrammar allowed = "-O= -a= -A= -B= -D= -e= -F= -i= -I= -l= -o= -P= -Q= -t= -T= -U= -w= -X= --output-document="
	curlGrammar allowed = "-o= -A= -b= -c= -C= -d= -D= -e= -E= -F= -h= -H= -K= -m= -P= -Q= -r= -t= -T= -u= -U= -w= -x= -X= -y= -Y= -z= --output= --output-dir="
	sedGrammar  allowed = "-e= -f= -l= -i? --expression= --file= --line-length= --in-place?"
	awkGrammar  allowed = "-i= -l= -f= -v= -F= --include= --load= --file= --assign= --field-separator="
)

// cd changes the directory as shells do: it resolves ".." in the path text, not through links.
func (r *reader) cd(operands []string) {
	if len(operands) != 1 || operands[0] == "" || operands[0] == "-" {
		return
	}
	dir := operands[0]
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(r.dir, dir)
	}
	r.dir = filepath.Clean(dir)
	r.plan.Dirs = append(r.plan.Dirs, r.dir)
}

// sed notes the files that sed -i writes. The first operand is the script unless an option gives it.
func (r *reader) sed(args []string) {
	w := sedGrammar.read(args)
	files := w.all()
	if !w.has("-e", "-f", "--expression", "--file") && len(files) > 0 {
		files = files[1:]
	}
	for _, script := range args {
		r.sedScript(script)
	}
	if w.has("-i", "--in-place") {
		r.writes(false, files...)
	} else {
		r.reads(files)
	}
}

// copies notes that the command writes its last operand, or a file in it if that is a directory.
// For mv it also notes the source.
func (r *reader) copies(name string, args []string) {
	grammar := noValues
	if name != "rsync" { // the -t of rsync takes no value
		grammar = "-t= --target-directory="
	}
	w := grammar.read(args)
	operands, to := w.all(), ""
	for _, dir := range w.values("-t", "--target-directory") {
		to = dir
	}
	if to == "" {
		if len(operands) < 2 {
			return
		}
		to, operands = operands[len(operands)-1], operands[:len(operands)-1]
	}
	if to == "" || strings.Contains(to, ":") && (name == "scp" || name == "rsync") {
		return
	}
	target := absolute(r.dir, to)
	if name == "rsync" && w.has("-n", "--dry-run") {
		return
	}
	if name == "rsync" && slices.ContainsFunc(w.options, func(o option) bool { return strings.HasPrefix(o.name, "--del") }) {
		r.discards(name, target)
	}
	spares := name != "rsync" && w.has("-n", "--no-clobber") && !w.has("-f", "-i", "-b", "--force", "--interactive", "--backup") // the command keeps existing files
	whole := !spares && (name != "ln" || w.has("-f", "--force"))
	into := (isDir(target) || strings.HasSuffix(to, "/")) && !w.has("-T", "--no-target-directory")
	for _, from := range operands {
		if at := target; from != "" && spares {
			if into {
				at = filepath.Join(target, filepath.Base(from))
			}
			if isThere(at) {
				continue
			}
		}
		if name == "ln" && from != "" && !w.has("-s", "--symbolic") { // with a second hard link, the holder could no longer land the file
			r.plan.Names = append(r.plan.Names, absolute(r.dir, from))
		}
		switch {
		case from == "" && into:
		case from == "": // the unknown source may be derived from the target
			r.writes(false, target)
		case name == "rsync" && strings.HasSuffix(from, "/"): // rsync copies the content of a directory with a final slash
			r.plan.Trees = append(r.plan.Trees, Tree{Dir: target})
		case into:
			r.lands(absolute(r.dir, from), filepath.Join(target, filepath.Base(from)), whole)
		default:
			r.lands(absolute(r.dir, from), target, whole)
		}
		if name == "mv" && from != "" {
			r.goes(absolute(r.dir, from))
		}
	}
}

// lands notes the file or directory that a copy replaces.
func (r *reader) lands(from, to string, whole bool) {
	if isDir(from) {
		r.plan.Trees = append(r.plan.Trees, Tree{Dir: to})
		return
	}
	r.writes(whole && !slices.Contains(r.sources[from], to), to)
}

// goes notes a file or directory that the command removes.
func (r *reader) goes(file string) {
	if isDir(file) {
		r.plan.Trees = append(r.plan.Trees, Tree{Dir: file, Goes: true})
		return
	}
	r.writes(false, file)
}

func (r *reader) removes(name string, operands []string) {
	if name != "rmdir" && name != "trash" { // these two remove nothing permanently
		r.discards(name, operands...)
	}
	for _, f := range operands {
		if f != "" {
			r.goes(absolute(r.dir, f))
		}
	}
}

// shell reads the script of a -c option, or the script on the shell's standard input.
func (r *reader) shell(args []string, s *syntax.Stmt) {
	for i, a := range args {
		if len(a) > 1 && a[0] == '-' && a[1] != '-' && strings.ContainsRune(a, 'c') && i+1 < len(args) {
			r.inner(func(in *reader) {
				in.maybe = in.maybe || i > 0 || a != "-c" && a != "-lc" // with other options the shell may not run the script, or not to its end
				in.script(args[i+1])
			})
			return
		}
	}
	if operands := noValues.read(args).all(); len(operands) > 0 {
		r.branch(func() { r.inner(func(in *reader) { in.script(r.texts[absolute(r.dir, operands[0])]) }) })
	}
	r.inner(func(in *reader) {
		in.maybe = in.maybe || len(args) > 0 // with a script file, standard input is only data
		in.script(r.fed(s))
	})
}

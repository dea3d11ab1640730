package hook

import (
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A prefix is a program that runs the command whose words follow its own.
type prefix struct {
	operands int     // number of the command's own operands
	valued   allowed // options whose value is the next word
	harmless allowed // options that do not change which files are written
	chdir    string  // the names of the option for the directory of the command
	output   string  // the names of the option for a file that the prefix writes
}

var prefixes = map[string]prefix{
	"sudo": {valued: "-u= -g= -C= -D= -h= -p= -R= -r= -t= -T= -U= --user= --group= --close-from= --chdir= --host= --prompt= --chroot= --role= --type= --command-timeout= --other-user=",
		harmless: "-n -u=", chdir: "-D --chdir"},
	"doas":    {valued: "-u= -C=", harmless: "-n -u="},
	"env":     {valued: "-u= -C= -a= --unset= --chdir= --argv0=", chdir: "-C --chdir"},
	"nice":    {valued: "-n= --adjustment=", harmless: "-n= -#"},
	"timeout": {operands: 1, valued: "-s= -k= --signal= --kill-after=", harmless: "-s= -k= -v --signal= --kill-after= --foreground --preserve-status"},
	"xargs": {valued: "-n= -I= -P= -L= -d= -E= -a= -s= --arg-file= --delimiter= --max-args= --max-chars= --max-procs= --process-slot-var=",
		harmless: "-0 -r -t -x -n= -P= -L= -d= -I= -E= -s= --null --no-run-if-empty --verbose --max-args= --max-procs= --max-lines= --delimiter= --replace="},
	"stdbuf": {valued: "-i= -o= -e= --input= --output= --error=", harmless: "-i= -o= -e="},
	"ionice": {valued: "-c= -n= --class= --classdata=", harmless: "-c= -n="},
	"chrt":   {operands: 1, valued: "-T= -P= -D= --sched-runtime= --sched-period= --sched-deadline="},
	"time":   {valued: "-f= -o= --format= --output=", harmless: "-p", output: "-o --output"},
	"exec":   {valued: "-a="}, "setsid": {harmless: "-w -f"}, "command": {harmless: "-p"},
	"nohup": {}, "builtin": {}, "taskset": {operands: 1}, "busybox": {}, "toybox": {},
}

// steered makes the command opaque if a prefix has options or assignments that may change what
// the program after it does.
func (r *reader) steered(args []string) {
	for len(args) > 1 {
		name := filepath.Base(args[0])
		p, is := prefixes[name]
		if !is {
			return
		}
		_, rest := p.read(args[1:])
		own := args[1 : len(args)-len(rest)]
		if name == "env" {
			own = slices.DeleteFunc(slices.Clone(own), func(a string) bool {
				variable, value, assigns := strings.Cut(a, "=")
				return assigns && isPlainSetting(variable, value)
			})
		}
		operands, ok := p.harmless.operands(own)
		if !ok || len(operands) > p.operands || name == "busybox" || name == "toybox" {
			r.opaque()
		}
		args = rest
	}
}

// strip removes prefixes, which only say how to run a command.
func strip(args []string) []string {
	for len(args) > 0 {
		name := filepath.Base(args[0])
		p, is := prefixes[name]
		if !is {
			break
		}
		if args = args[1:]; name == "env" {
			args = splitString(args)
		}
		_, rest := p.read(args)
		if name == "xargs" {
			return strip(fedWords(args[:len(args)-len(rest)], rest))
		}
		args = rest
	}
	return args
}

// behind notes the effects of a command with a prefix, which may not run the program, or may
// redirect its output. args are the words after all prefixes.
func (r *reader) behind(given, args []string, s *syntax.Stmt) {
	dir := r.dir
	for words := given; len(words) > 0; {
		name := filepath.Base(words[0])
		p, is := prefixes[name]
		if !is {
			break
		}
		if name == "xargs" {
			r.findsFor(words, s)
		}
		if words = words[1:]; name == "env" {
			words = splitString(words)
		}
		options, rest := p.read(words)
		for _, o := range options {
			if slices.Contains(strings.Fields(p.chdir), o.name) {
				dir = absolute(dir, o.value)
			}
			if slices.Contains(strings.Fields(p.output), o.name) {
				r.writes(true, o.value)
			}
		}
		for _, a := range words[:len(words)-len(rest)] {
			if variable, value, assigns := strings.Cut(a, "="); assigns {
				r.prefix(variable, value)
			}
		}
		words = rest
	}
	if dir == r.dir {
		r.branch(func() { r.command(args, s) })
		return
	}
	r.plan.Dirs = append(r.plan.Dirs, dir)
	r.branch(func() {
		r.inner(func(in *reader) {
			in.dir = dir
			in.command(args, s)
		})
	})
}

// splitString replaces the -S option of env with the words of its value.
func splitString(args []string) []string {
	for i, a := range args {
		text, joined := strings.CutPrefix(a, "--split-string=")
		switch {
		case (a == "-S" || a == "--split-string") && i+1 < len(args):
			return slices.Concat(args[:i], strings.Fields(args[i+1]), args[i+2:])
		case joined:
			return slices.Concat(args[:i], strings.Fields(text), args[i+1:])
		case strings.HasPrefix(a, "-S"):
			return slices.Concat(args[:i], strings.Fields(a[2:]), args[i+1:])
		}
	}
	return args
}

// read separates the prefix's own options and operands from the words of the command.
func (p prefix) read(args []string) (options []option, rest []string) {
	for len(args) > 0 {
		switch a := args[0]; {
		case strings.HasPrefix(a, "-"):
			list, _, next := p.valued.split(p.whole(a))
			if next && len(args) > 1 {
				args = args[1:]
				list[len(list)-1].value = args[0]
			}
			options = append(options, list...)
		case strings.Contains(a, "="):
		case p.operands > 0:
			p.operands--
		case a == "" && len(args) > 1: // the word is unknown, and may be an option or a variable
		default:
			return options, args
		}
		args = args[1:]
	}
	return options, args
}

// whole completes an abbreviated long option.
func (p prefix) whole(word string) string {
	name, value, joined := strings.Cut(word, "=")
	if len(name) < 3 || name[:2] != "--" {
		return word
	}
	for f := range strings.FieldsSeq(string(p.valued)) {
		if full := strings.TrimSuffix(f, "="); strings.HasPrefix(full, name) {
			if joined {
				return full + "=" + value
			}
			return full
		}
	}
	return word
}

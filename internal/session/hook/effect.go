package hook

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"lockkeeper/internal/project/protect"
)

// A command is harmless if each of its parts only reads, only creates files, or only removes and
// replaces the files that it names. These are checked before it runs. Any other command is opaque,
// and needs a snapshot of uncommitted files. An opaque command sweeps if it certainly removes or
// replaces files and does not name them.

// anywhere is the directory of a sweep that may reach any file.
const anywhere = "/"

// opaque notes that the effect of a part of the command on files is unknown.
func (r *reader) opaque() { r.plan.Opaque = true }

// sweeps notes that a part of the command removes or replaces files that it does not name.
func (r *reader) sweeps(act string) {
	r.plan.Opaque = true
	dirs := r.within
	if len(dirs) == 0 {
		dirs = []string{anywhere}
	}
	for _, dir := range dirs {
		r.plan.Sweeps = append(r.plan.Sweeps, Sweep{Act: act, Dir: dir})
	}
}

// A Sweep is a part of a command that removes or replaces unknown files below a directory.
type Sweep struct {
	Act string // the act as a refusal names it, such as "find -delete"
	Dir string // absolute
}

// effect notes the effects of a simple command on files that it does not name.
func (r *reader) effect(given string, args []string, s *syntax.Stmt) {
	name := filepath.Base(given)
	if given == "" || strings.Contains(given, "/") && !slices.Contains([]string{"/bin", "/usr/bin", "/usr/local/bin"}, filepath.Dir(given)) || r.isLocal(given) {
		r.opaque()
		return
	}
	if len(args) == 1 && (args[0] == "--version" || args[0] == "--help") && isVersioned(name) {
		return
	}
	if isOwnName(given) && len(args) > 2 && args[0] == "lock" && args[1] == "exec" {
		if i := slices.Index(args, "--"); i >= 0 {
			r.branch(func() { r.command(args[i+1:], s) })
			return
		}
	}
	if slices.Contains(args, "") && slices.Contains(removers, name) {
		r.sweeps(name)
		return
	}
	options, known := harmless()[name]
	if !known && len(args) > 0 {
		name += "/" + args[0]
		options, known = harmless()[name]
		args = args[1:]
	}
	if !known || !r.isHarmless(name, options, args) {
		r.opaque()
	}
}

// removers are the programs that remove or replace the files that they name.
var removers = []string{"rm", "unlink", "shred", "tee", "truncate", "dd", "cp", "install"}

// isHarmless judges a program of harmless.txt by its options and its rule.
func (r *reader) isHarmless(name string, options allowed, args []string) bool {
	operands, ok := args, true
	if options != anyOptions && options != byRule {
		operands, ok = options.operands(args)
	}
	if rule := ruleOf(name); rule != nil {
		return ok && rule(r, args, operands)
	}
	less := func(o string) bool { return strings.HasPrefix(o, "+") } // less runs +!command
	return ok && (options == anyOptions || options != byRule && !slices.ContainsFunc(operands, less))
}

// isLocal reports whether a program may be a file that agents can write: in the directory of the
// command, in the repository around it, or in a relative directory of PATH.
func (r *reader) isLocal(given string) bool {
	path, _ := r.env("PATH")
	if slices.ContainsFunc(filepath.SplitList(path), func(dir string) bool { return !filepath.IsAbs(dir) }) {
		return true
	}
	file, dir := r.starts(given), protect.Real(r.dir)
	return isBelow(file, dir) || isBelow(file, cmp.Or(topOf(dir), dir))
}

// reassigns marks the variables that a command assigns as unknown, and reports whether the command
// does nothing else.
func (r *reader) reassigns(options allowed, args []string) bool {
	names, ok := options.operands(args)
	for _, n := range names {
		if ok = ok && isName(n); ok {
			r.sets(n)
		}
	}
	if !ok {
		clear(r.vars)
	}
	return ok
}

// arrives reports whether cd certainly goes to the directory that it names. If it does not, the
// directory of the following commands is unknown.
func (r *reader) arrives(args []string) bool {
	if len(args) != 1 || args[0] == "" || strings.ContainsRune("+-", rune(args[0][0])) {
		return false
	}
	_, searches := r.env("CDPATH")
	info, err := os.Stat(absolute(r.dir, args[0]))
	return err == nil && info.IsDir() && (!searches || filepath.IsAbs(args[0]))
}

// isLinkToDir reports whether a file is a link to a directory. A copy to it goes into that directory.
func isLinkToDir(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.IsDir() && !isDir(file)
}

// findEffect notes what find does with the files that it finds below dirs.
func (r *reader) findEffect(dirs, args []string, s *syntax.Stmt) {
	in := *r
	in.within = nil
	for _, d := range dirs {
		if d == "" {
			in.within = []string{anywhere}
			break
		}
		in.within = append(in.within, absolute(r.dir, d))
	}
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "-delete":
			in.sweeps("find -delete")
		case strings.HasPrefix(a, "-exec") || strings.HasPrefix(a, "-ok"):
			words := args[i+1:]
			if end := slices.IndexFunc(words, func(w string) bool { return w == ";" || w == "+" }); end >= 0 {
				words = words[:end]
			}
			i += len(words) + 1
			at := in
			if strings.HasSuffix(a, "dir") {
				in.opaque() // -execdir runs the program in the directory of each file
			}
			at.branch(func() { at.command(blanked(words, "{}"), s) })
		case slices.Contains(findTests(), a):
			i++
			if i < len(args) && args[i] == "" {
				in.opaque()
			}
		case !slices.Contains(findFlags(), a):
			in.opaque()
		}
	}
}

// findTests lists the words of find that take one argument and neither write nor run anything.
func findTests() []string {
	return strings.Fields("-amin -anewer -atime -cmin -cnewer -ctime -fstype -gid -group -ilname -iname -inum -ipath -iwholename -iregex -links -lname -maxdepth -mindepth -mmin -mtime " +
		"-name -newer -newermt -path -perm -printf -regex -regextype -samefile -size -type -uid -used -user -wholename -xtype")
}

// findFlags lists the words of find that take no argument and neither write nor run anything.
func findFlags() []string {
	return strings.Fields("( ) ! , -a -and -not -o -or -daystart -depth -empty -executable -false -follow -ls -mount -nogroup -noleaf -nouser -nowarn -print -print0 -prune -quit " +
		"-readable -true -warn -writable -xdev")
}

// blanked replaces each word that contains the placeholder with "", which means an unknown word.
func blanked(words []string, place string) []string {
	list := slices.Clone(words)
	for i, w := range list {
		if strings.Contains(w, place) {
			list[i] = ""
		}
	}
	return list
}

// fedWords returns the words of the command that xargs runs. Words that xargs adds or
// substitutes are unknown.
func fedWords(own, words []string) []string {
	place := "{}"
	for _, given := range allowed("-I= -n= -P= -L= -d= -E= -a= -s= --replace?").read(own).values("-I", "--replace") {
		place = given
	}
	if len(words) == 0 {
		return []string{"echo"}
	}
	return append(blanked(words, place), "")
}

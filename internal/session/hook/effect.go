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

// A command is harmless if every part of it only reads, only creates files, or removes and
// replaces exactly the files that it names, which are checked before it runs. Any other
// command is opaque, and needs a snapshot of uncommitted files. An opaque command sweeps if
// it certainly removes or replaces files and does not name them.

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
	Act string // as a refusal names it, such as "find -delete"
	Dir string // absolute
}

// effect notes what a simple command does to files that it does not name.
func (r *reader) effect(given string, args []string, s *syntax.Stmt) {
	name := filepath.Base(given)
	if given == "" || strings.Contains(given, "/") && !slices.Contains([]string{"/bin", "/usr/bin", "/usr/local/bin"}, filepath.Dir(given)) || r.isLocal(given) {
		r.opaque()
		return
	}
	if slices.Contains(harmless(), name) || len(args) == 1 && (args[0] == "--version" || args[0] == "--help") && isVersioned(name) {
		return
	}
	if options, known := harmlessWith(name); known {
		operands, ok := options.operands(args)
		if !ok || slices.ContainsFunc(operands, func(o string) bool { return strings.HasPrefix(o, "+") }) { // less runs +!command
			r.opaque()
		}
		return
	}
	if isOwnName(given) && len(args) > 2 && args[0] == "lock" && args[1] == "exec" {
		if i := slices.Index(args, "--"); i >= 0 {
			r.branch(func() { r.command(args[i+1:], s) })
			return
		}
	}
	if !r.isHarmlessBuiltin(name, args) && !r.isHarmlessCopy(name, args) && !isHarmlessFilter(name, args) && !isHarmlessAct(name, args) {
		r.opaque()
	}
}

// isLocal reports whether a program may be one that lies where agents write: in the directory
// of the command, in the repository around it, or wherever a relative part of PATH leads.
func (r *reader) isLocal(given string) bool {
	path, _ := r.env("PATH")
	if slices.ContainsFunc(filepath.SplitList(path), func(dir string) bool { return !filepath.IsAbs(dir) }) {
		return true
	}
	file, dir := r.starts(given), protect.Real(r.dir)
	return isBelow(file, dir) || isBelow(file, cmp.Or(topOf(dir), dir))
}

// isHarmlessBuiltin judges commands that a shell does itself.
func (r *reader) isHarmlessBuiltin(name string, args []string) bool {
	switch name {
	case "cd", "pushd":
		return r.arrives(args)
	case "test", "[":
		return isTest(args)
	case "printf":
		return isPrintf(args)
	case "set":
		return isSet(args)
	case "exit", "return", "break", "continue", "shift", "ulimit", "history":
		return !slices.ContainsFunc(args, func(a string) bool { return !isNumber(a) })
	case "read":
		return r.reassigns(allowed("-r -s -p= -t= -n= -N= -d= -u="), args)
	case "unset":
		return r.reassigns(allowed("-v"), args)
	case "sh", "bash", "dash", "zsh", "ksh", "ash":
		return len(args) == 2 && (args[0] == "-c" || args[0] == "-lc") && args[1] != ""
	case "eval":
		return !slices.Contains(args, "")
	}
	return false
}

// reassigns notes the variables that a command gives another value, and reports whether it
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

// arrives reports whether cd certainly goes to the directory that it names. Otherwise the
// directory of the commands after it is unknown.
func (r *reader) arrives(args []string) bool {
	if len(args) != 1 || args[0] == "" || strings.ContainsRune("+-", rune(args[0][0])) {
		return false
	}
	_, searches := r.env("CDPATH")
	info, err := os.Stat(absolute(r.dir, args[0]))
	return err == nil && info.IsDir() && (!searches || filepath.IsAbs(args[0]))
}

// isHarmlessCopy judges programs that write or remove the files that they name, which are
// checked before they run.
func (r *reader) isHarmlessCopy(name string, args []string) bool {
	unknown := slices.Contains(args, "")
	switch name {
	case "rm", "unlink", "shred", "tee", "truncate", "dd", "cp", "install":
		if unknown {
			r.sweeps(name)
			return false
		}
	}
	switch name {
	case "rm", "unlink", "shred", "tee", "truncate":
		return true
	case "dd":
		return !strings.Contains(strings.Join(args, " "), "notrunc")
	case "cp", "install":
		options := allowed("-f -p -v -n -u -i -L -P -T -t= --force --verbose --no-clobber --update --preserve? --no-target-directory --target-directory=")
		if name == "install" {
			options = "-m= -o= -g= -v -p -T -t= --mode= --owner= --group= --verbose --no-target-directory --target-directory="
		}
		operands, ok := options.operands(args)
		return ok && !slices.ContainsFunc(operands, func(f string) bool {
			file := absolute(r.dir, f)
			return isDir(file) && f != operands[len(operands)-1] || isLinkToDir(file)
		})
	case "sort":
		operands, ok := allowed("-b -d -f -g -i -M -h -n -R -r -V -c -C -m -s -u -z -k= -t= -S= -o= --key= --field-separator= --output= --reverse --unique --numeric-sort " +
			"--human-numeric-sort --version-sort --ignore-case --stable --check? --sort= --parallel= --zero-terminated").operands(args)
		return ok && !slices.ContainsFunc(valuesOf(args, "-o", "--output", "ktS"), func(f string) bool { return slices.Contains(operands, f) })
	case "curl":
		_, ok := allowed("-s -S -L -f -k -i -I -v -G -g -4 -6 -O -N -j -# -X= -H= -d= -F= -u= -A= -m= -b= -e= -r= -o= --silent --show-error --location --fail --insecure --include --head " +
			"--verbose --get --globoff --remote-name --remote-name-all --output= --output-dir= --request= --header= --data= --data-raw= --data-binary= --data-urlencode= --json= --form= " +
			"--user= --user-agent= --max-time= --connect-timeout= --retry= --retry-delay= --compressed --no-progress-meter --progress-bar --fail-with-body --url=").operands(args)
		return ok
	case "wget":
		_, ok := allowed("-q -S -t= -T= -O= -U= --quiet --server-response --spider --tries= --timeout= --output-document= --header= --user-agent= --no-verbose --no-check-certificate " +
			"--method= --body-data= --post-data=").operands(args)
		return ok && (slices.Contains(args, "--spider") || len(valuesOf(args, "-O", "--output-document", "tTU")) > 0)
	}
	return name == "find" || name == "git" // findEffect and gitEffect judge these
}

// isLinkToDir reports whether a file is a link to a directory, into which a copy goes.
func isLinkToDir(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.IsDir() && !isDir(file)
}

// isHarmlessFilter judges programs that print what they make of their input, unless their
// script or an option has them write.
func isHarmlessFilter(name string, args []string) bool {
	switch name {
	case "uniq":
		operands, ok := allowed("-c -d -D -i -u -z -f= -s= -w= --count --repeated --all-repeated? --ignore-case --unique --skip-fields= --skip-chars= --check-chars= --group? --zero-terminated").operands(args)
		return ok && len(operands) < 2
	case "sed", "gsed":
		return isPrinting(args)
	case "awk", "gawk", "mawk":
		_, ok := allowed("-F= -v=").operands(args)
		text := strings.Join(args, " ")
		return ok && !strings.ContainsAny(text, ">|@") && !strings.Contains(text, "system")
	case "tar":
		return isTarList(args)
	case "hostname":
		operands, ok := allowed("-f -i -I -s -d -A --fqdn --short --ip-address").operands(args)
		return ok && len(operands) == 0
	case "tput":
		return len(args) > 0 && slices.Contains([]string{"cols", "lines", "colors", "bold", "sgr0", "setaf", "setab"}, args[0])
	}
	return false
}

// isHarmlessAct judges programs by their subcommand, which is their first word.
func isHarmlessAct(name string, args []string) bool {
	if len(args) == 0 {
		return false
	}
	if name == ownProgram && len(args) > 1 && args[0] == "rescue" {
		_, ok := allowed("--json").operands(args[1:])
		return ok && (args[1] == "list" || args[1] == "show")
	}
	options, known := harmlessActs(name)[args[0]]
	if !known {
		return false
	}
	operands, ok := options.operands(args[1:])
	return ok && !(name == "go" && args[0] == "env" && strings.Contains(strings.Join(operands, " "), "="))
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
				in.opaque() // it runs in the directory of each file
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

// findTests lists the words of find that are followed by one other, and neither write nor run
// anything.
func findTests() []string {
	return strings.Fields("-amin -anewer -atime -cmin -cnewer -ctime -fstype -gid -group -ilname -iname -inum -ipath -iwholename -iregex -links -lname -maxdepth -mindepth -mmin -mtime " +
		"-name -newer -newermt -path -perm -printf -regex -regextype -samefile -size -type -uid -used -user -wholename -xtype")
}

// findFlags lists those that stand alone.
func findFlags() []string {
	return strings.Fields("( ) ! , -a -and -not -o -or -daystart -depth -empty -executable -false -follow -ls -mount -nogroup -noleaf -nouser -nowarn -print -print0 -prune -quit " +
		"-readable -true -warn -writable -xdev")
}

// blanked returns words with those that contain a placeholder replaced by "", which means an
// unknown word.
func blanked(words []string, place string) []string {
	list := slices.Clone(words)
	for i, w := range list {
		if strings.Contains(w, place) {
			list[i] = ""
		}
	}
	return list
}

// fedWords returns the words of the command that xargs runs. The names that xargs adds, or
// puts in place of a word, are unknown.
func fedWords(own, words []string) []string {
	place := "{}"
	for _, given := range valuesOf(own, "-I", "--replace", "nPLdEas") {
		place = given
	}
	if len(words) == 0 {
		return []string{"echo"}
	}
	return append(blanked(words, place), "")
}

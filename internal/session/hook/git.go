package hook

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"lockkeeper/internal/encoding/shellword"
)

func isDir(file string) bool {
	info, err := os.Lstat(file)
	return err == nil && info.IsDir()
}

// git reads a git command: it notes the files that the command writes, or that it rewrites shared state.
func (r *reader) git(args []string, s *syntax.Stmt) {
	dir, configured, printed := r.dir, false, false
	tree, repository := r.variable("GIT_WORK_TREE"), r.variable("GIT_DIR")
	given := args
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		configured = configured || !slices.Contains([]string{"-C", "-P", "--no-pager", "--no-optional-locks", "--literal-pathspecs", "--version", "--help"}, args[0])
		printed = printed || args[0] == "--help" || args[0] == "-h" || args[0] == "--version"
		option, value, joined := strings.Cut(args[0], "=")
		if !joined && len(args) > 1 {
			value = args[1]
		}
		switch option {
		case "--work-tree":
			tree = value
		case "--git-dir":
			repository = value
		}
		switch {
		case args[0] == "-C" && len(args) > 1:
			configured = configured || args[1] == ""
			dir = absolute(dir, args[1])
			args = args[1:]
		case args[0] == "-c" && len(args) > 1 && strings.HasPrefix(args[1], "alias."):
			name, does, _ := strings.Cut(strings.TrimPrefix(args[1], "alias."), "=")
			r.aliases[strings.ToLower(name)] = does
			args = args[1:]
		case slices.Contains([]string{"-c", "--git-dir", "--work-tree", "--namespace"}, args[0]) && len(args) > 1:
			args = args[1:]
		}
		args = args[1:]
	}
	at := absolute(dir, repository) // git finds both from the directory that all of -C lead to
	if tree != "" {
		dir = absolute(dir, tree)
	}
	if other := filepath.Dir(at); repository != "" && filepath.Base(at) == ".git" && other != dir { // the index and the branch are those of another work tree
		r.inner(func(in *reader) {
			in.dir, in.prefixes, in.maybe = other, nil, true
			delete(in.vars, "GIT_DIR")
			delete(in.vars, "GIT_WORK_TREE")
			in.git(args, s)
		})
	}
	if len(args) == 0 || args[0] == "help" || printed {
		if opens := func(a string) bool { return a == "" || a[0] == '-' }; configured || !isPlainRepository(dir) || len(args) > 0 && slices.ContainsFunc(args[1:], opens) {
			r.opaque() // the configuration or an option may name the program that shows the page
		}
		return
	}
	r.plan.Dirs = append(r.plan.Dirs, dir)
	act, rest := args[0], args[1:]
	if act == "" { // the act is unknown, so it may be any subcommand
		r.opaque()
		r.plan.Index = append(r.plan.Index, IndexAct{Name: "git", Dir: dir, Selection: everything()})
		return
	}
	if does := r.alias(dir, act); does != "" {
		r.opaque()
		command, isShell := strings.CutPrefix(does, "!")
		if !isShell {
			command = "git " + does
		}
		for _, a := range rest {
			command += " " + shellword.Quote(a)
		}
		r.inner(func(in *reader) {
			in.dir = dir
			in.script(command)
		})
		return
	}
	if !isBuiltin(act) && r.reconfigured(given[:len(given)-len(args)]) { // the subcommand may be an alias for anything
		r.plan.Index = append(r.plan.Index, IndexAct{Name: "git " + act, Dir: dir, Selection: everything()})
	}
	trial := isTrial(act, rest)
	help := trial && (rest[len(rest)-1] == "--help" || rest[0] == "-h")
	if configured || !help && !isHarmlessGit(act, rest) || !isPlainRepository(dir) {
		r.opaque()
	}
	if trial {
		return
	}
	switch act {
	case "config":
		r.configures(rest, dir)
	case "submodule":
		r.submodule(dir, rest, s)
	}
	in := *r
	in.dir = dir
	rest = in.spelled(rest, s)
	var patch []string
	if act == "apply" && applies(rest) {
		if patch = in.gitApply(rest, s); !noValues.read(rest).has("--cached") {
			in.writes(false, patch...)
		}
	}
	if act == "merge-file" && !noValues.read(rest).has("-p", "--stdout") {
		if operands := allowed("-L=").read(rest).all(); len(operands) > 0 {
			in.writes(false, operands[0])
		}
	}
	in.writes(true, outputs(act, rest)...)
	if q, is := in.indexed(act, rest, patch); is {
		r.plan.Index = append(r.plan.Index, IndexAct{Name: "git " + act, Dir: dir, Selection: q})
	}
	files, rewrites := in.gitAct(act, rest)
	if q, is := gitDiscard(act, rest, files); is {
		r.plan.Discards = append(r.plan.Discards, Discard{Act: "git " + act, Dir: dir, Unsaved: q})
	}
	for _, f := range files {
		file := absolute(dir, f)
		switch {
		case f == "" || isPattern(f): // git itself expands the pattern
			rewrites = true
		case isDir(file):
			r.plan.Trees = append(r.plan.Trees, Tree{Dir: file, Goes: act == "rm" || act == "mv"})
		default:
			r.writes(false, file)
		}
	}
	if w := noValues.read(rest); act == "worktree" && len(w.operands) > 1 && w.operands[0] == "remove" && w.has("-f", "--force") {
		in.removes("git worktree remove", w.all()[1:])
	}
	if rewrites {
		if recurses(dir, given) {
			r.rewritesSubmodules("git "+act, dir, nil)
		}
		r.plan.Git = append(r.plan.Git, GitAct{Name: "git " + act, Dir: dir, Asked: r.asked(dir, act, rest)})
	}
	r.moves(dir, act, rest)
}

// applies reports whether git apply changes anything.
func applies(args []string) bool {
	w := noValues.read(args)
	return w.has("--apply") || !w.has("--check", "--stat", "--numstat", "--summary")
}

// gitAct returns the files that a git command writes, or reports that it rewrites shared state:
// the whole work tree, the stash, or history that others build on.
func (r *reader) gitAct(act string, args []string) (files []string, rewrites bool) {
	w := noValues.read(args)
	operands, named := w.all(), w.paths
	switch act {
	case "bisect", "sparse-checkout":
		return nil, len(operands) == 0 || !slices.Contains([]string{"log", "view", "visualize", "terms", "help", "list"}, operands[0])
	case "stash":
		return nil, len(operands) == 0 || !slices.Contains([]string{"list", "show"}, operands[0])
	case "reset":
		paths := operands
		if len(paths) > 1 && !r.areFiles(paths[:1]) { // the command names a commit before the files
			paths = paths[1:]
		}
		return nil, len(named) == 0 && (w.has("--hard", "--merge", "--keep", "--soft") || !r.areFiles(paths))
	case "checkout":
		switch {
		case w.has("--pathspec-from-file"):
			return nil, true
		case len(named) > 0:
			return named, false
		case slices.Contains(args, "--"): // the command names a branch before the dashes
			return nil, true
		case w.has("-b", "-B", "--orphan"): // the command switches the branch that all sessions commit to
			return nil, true
		case len(operands) > 0 && r.arePaths(operands):
			return operands, false
		case len(operands) > 1 && r.arePaths(operands[1:]):
			return operands[1:], false
		}
		return nil, true
	case "switch":
		return nil, true
	case "restore":
		if w.has("--staged", "-S") && !w.has("--worktree", "-W") {
			return nil, false
		}
		return operands, w.has("--pathspec-from-file") || len(operands) == 0 && w.has("-p", "--patch")
	case "commit":
		return nil, w.has("--amend")
	case "clean":
		return nil, w.has("-f", "--force") && !w.has("-n", "--dry-run")
	case "rebase", "merge", "pull", "cherry-pick", "revert", "am", "filter-branch", "filter-repo", "read-tree", "checkout-index", "update-ref", "prune", "fast-import", "replace":
		return nil, true
	case "fetch": // a fetch may write into the current branch
		return nil, w.has("-u", "--update-head-ok")
	case "branch": // the command may rename the current branch
		return nil, w.has("-m", "-M", "--move")
	case "symbolic-ref":
		return nil, len(operands) > 1 || w.has("-d", "--delete")
	case "worktree": // with force, a branch may be current in several work trees
		return nil, len(operands) > 2 && operands[0] == "add" && w.has("-f", "--force")
	case "gc":
		w = allowed("--auto -q").read(args)
		return nil, !w.known || !w.has("--auto")
	case "reflog": // the stash is a reflog
		return nil, len(operands) > 0 && slices.Contains([]string{"expire", "delete"}, operands[0])
	case "rm":
		return operands, w.has("--pathspec-from-file")
	case "mv":
		return r.moved(operands), false
	}
	return nil, false
}

// moved returns the files that git mv renames, and their new names.
func (r *reader) moved(operands []string) []string {
	last := len(operands) - 1
	if last < 1 || !isDir(absolute(r.dir, operands[last])) {
		return operands
	}
	files := slices.Clone(operands[:last])
	for _, from := range operands[:last] {
		to := "" // the new name is unknown
		if from != "" && !isPattern(from) {
			to = filepath.Join(operands[last], filepath.Base(from))
		}
		files = append(files, to)
	}
	return files
}

// outputs returns the files to which a git command writes its output.
func outputs(act string, args []string) []string {
	w := allowed("-o= --output=").read(args)
	switch act {
	case "archive":
		return w.values("-o", "--output")
	case "bundle":
		if operands := w.all(); len(operands) > 1 && operands[0] == "create" {
			return operands[1:2]
		}
	case "diff", "log", "show", "whatchanged", "diff-tree", "diff-index", "diff-files", "range-diff", "format-patch", "stash":
		return w.values("--output")
	}
	return nil
}

// isPattern reports whether git expands a word to file names. No branch name has this form.
func isPattern(word string) bool {
	return strings.HasPrefix(word, ":") || strings.ContainsAny(word, "*?[")
}

// arePaths reports whether all words are existing files or patterns.
func (r *reader) arePaths(words []string) bool {
	for _, w := range words {
		if !isPattern(w) && !r.areFiles([]string{w}) {
			return false
		}
	}
	return len(words) > 0
}

// areFiles reports whether all words name existing files rather than branches. Git refuses a
// word that is both.
func (r *reader) areFiles(words []string) bool {
	for _, w := range words {
		if _, err := os.Lstat(absolute(r.dir, w)); w == "" || err != nil {
			return false
		}
	}
	return len(words) > 0
}

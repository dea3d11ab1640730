package hook

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/agent/program"
	"lockkeeper/internal/git"
	"lockkeeper/internal/project/protect"
	"lockkeeper/internal/session/refusal"
)

// A Discard is a command that removes files permanently unless git has their content.
type Discard struct {
	Act string // the act as the command spells it
	Dir string // the directory in which the command runs
	git.Unsaved
}

// discard notes an absolute path that a program other than git removes.
func (p *Effects) discard(act, file string) {
	dir, name := filepath.Split(file)
	if isDir(file) { // the file may be the root itself
		dir, name = file, "."
	}
	if last := len(p.Discards) - 1; last >= 0 && p.Discards[last].Literal && p.Discards[last].Dir == dir {
		p.Discards[last].Paths = append(p.Discards[last].Paths, name)
		return
	}
	p.Discards = append(p.Discards, Discard{Act: act, Dir: dir,
		Unsaved: git.Unsaved{Paths: []string{name}, Literal: true, Tracked: true, Untracked: true, Ignored: true}})
}

// discards notes the files that a program removes.
func (r *reader) discards(act string, files ...string) {
	for _, f := range files {
		if f != "" {
			r.plan.discard(act, absolute(r.dir, f))
		}
	}
}

// gitDiscard returns which uncommitted content a git command removes, and whether it removes any.
// files are the paths that the command names. An unknown path may be any path.
func gitDiscard(act string, args, files []string) (q git.Unsaved, is bool) {
	given := noValues.read(args)
	forced := given.has("-f", "--force")
	q.Tracked = true
	switch act {
	case "checkout", "restore":
		is = len(files) > 0 || forced || given.has("--pathspec-from-file") && !given.has("--staged", "-S")
		q.Paths = files
	case "switch":
		is = forced || given.has("--discard-changes")
	case "reset":
		is = given.has("--hard", "--merge")
	case "stash": // a stash removes the changes of everyone who works in the tree
		w := askable["stash"].read(args)
		is = len(w.operands) == 0 || w.operands[0] == "push" || w.operands[0] == "save"
		if q.Paths = w.paths; len(w.operands) > 0 && w.operands[0] == "push" {
			q.Paths = append(w.operands[1:len(w.operands):len(w.operands)], w.paths...)
		}
		q.Ignored = given.has("-a", "--all")
		q.Untracked = q.Ignored || given.has("-u", "--include-untracked")
	case "clean":
		is = forced && !given.has("-n", "--dry-run")
		paths, spared := spares(args)
		q.Tracked, q.Untracked, q.Ignored = false, !given.has("-X"), given.has("-x", "-X")
		if q.Shallow = !given.has("-d") && len(paths) == 0; len(paths) == 0 {
			paths = []string{"."}
		}
		if q.Paths = paths; !slices.Contains(paths, "") {
			q.Paths = append(paths, spared...)
		}
	case "rm":
		is = forced && !given.has("--cached")
		q.Paths = files
	case "rebase", "merge", "cherry-pick", "revert", "am":
		is = given.has("--abort", "--skip")
	case "checkout-index", "read-tree":
		is = forced || given.has("--reset")
	}
	if slices.Contains(q.Paths, "") {
		q.Paths = nil
	}
	return q, is
}

// spares separates the paths of git clean from the names that it must keep. It returns those
// names as git pathspecs, and ignores exclude patterns with a slash, "!" or a backslash.
func spares(args []string) (paths, spared []string) {
	w := askable["clean"].read(args)
	for _, name := range w.values("-e", "--exclude") {
		if name = strings.TrimSuffix(name, "/"); name != "" && !strings.ContainsAny(name, "/!\\") {
			spared = append(spared, ":(exclude,top,glob)**/"+name, ":(exclude,top,glob)**/"+name+"/**")
		}
	}
	return w.all(), spared
}

// mostNamed limits the files that a refusal names.
const mostNamed = 3

// discarded refuses to remove content that the session neither saw nor created and that git
// cannot restore: it may be a person's work.
func (v *visit) discarded(ctx context.Context) error {
	var act string // the first refused command
	var unknown []string
	for _, d := range gathered(v.codebase.discards) {
		files, ignored, err := unsaved(ctx, d)
		if err != nil {
			return err
		}
		// Ignored files can be made again, but protected ones cannot.
		found, err := v.firstGuarded(slices.Concat(files, ignored))
		if err != nil {
			return err
		}
		if found != nil {
			name := v.name(found.file)
			r := found.refusal(name)
			if d.Act == "git clean" {
				r.Next = append([]string{"git clean … -e " + strings.Join(spared(), " -e ") + sparing(name)}, r.Next...)
			}
			v.refuse(r)
			return nil
		}
		some, err := v.session.Unknown(v.namesOf(files))
		if err != nil {
			return err
		}
		if unknown = append(unknown, some...); act == "" && len(some) > 0 {
			act = d.Act
		}
	}
	if len(unknown) > 0 {
		v.refuse(refusal.Discards(act, unknown[:min(len(unknown), mostNamed)], len(unknown)))
	}
	return nil
}

// gathered merges the named removals of one command in one repository, so that git is asked
// once even if the names are in many directories.
func gathered(list []Discard) (questions []Discard) {
	type in struct{ act, top string }
	asked := map[in]int{}
	for _, d := range list {
		dir := protect.Real(d.Dir)
		top := topOf(dir)
		if !d.Literal || top == "" || !isDir(dir) {
			questions = append(questions, d)
			continue
		}
		at, known := asked[in{d.Act, top}]
		if !known {
			at = len(questions)
			asked[in{d.Act, top}] = at
			questions = append(questions, Discard{Act: d.Act, Dir: top, Unsaved: d.Unsaved})
			questions[at].Paths = nil
		}
		for _, p := range d.Paths {
			questions[at].Paths = append(questions[at].Paths, filepath.Join(strings.TrimPrefix(strings.TrimPrefix(dir, top), "/"), p))
		}
	}
	return questions
}

// topOf returns the top of the repository around a directory, or "".
func topOf(dir string) string {
	for ; !isThere(filepath.Join(dir, lockkeeper.GitTarget)); dir = filepath.Dir(dir) {
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
	return dir
}

// spared lists the directories that git clean must keep in every codebase.
func spared() []string {
	list := []string{protect.OwnDir}
	for _, p := range program.All() {
		list = append(list, p.Dir)
	}
	return list
}

// sparing returns the option that makes git clean keep the topmost directory of a file, or ""
// if the usual options already name it.
func sparing(name string) string {
	top, _, _ := strings.Cut(name, "/")
	if slices.Contains(spared(), top) {
		return ""
	}
	return " -e " + top
}

// firstGuarded returns the first file that is protected or is a directory above a protected
// file, or nil.
func (v *visit) firstGuarded(files []string) (*guarded, error) {
	c, err := v.configuration(v.codebase.root)
	if err != nil {
		return nil, err
	}
	checker := c.Protection(v.proc.Env).Checker()
	for _, f := range files {
		if class, is := checker.Tree(f); is {
			return &guarded{f, class}, nil
		}
	}
	return nil, nil
}

// namesOf returns the names of absolute files relative to the root. It resolves each directory
// only once.
func (v *visit) namesOf(files []string) (names []string) {
	dirs := map[string]string{}
	for _, f := range files {
		dir, base := filepath.Split(f)
		in, known := dirs[dir]
		if !known {
			in = v.name(dir)
			dirs[dir] = in
		}
		names = append(names, filepath.Join(in, base))
	}
	return names
}

// unsaved lists the files that a command would lose. Outside a git repository, it lists all files
// that the command names.
func unsaved(ctx context.Context, d Discard) (files, ignored []string, err error) {
	if _, err := os.Stat(d.Dir); err != nil {
		return nil, nil, nil // the directory does not exist
	}
	files, ignored, err = git.NewWorkTree(d.Dir, d.Dir, os.Environ()).Unsaved(ctx, d.Unsaved)
	if !isRefusal(err) {
		return files, ignored, err
	}
	if !d.Literal { // git refuses such a path as well
		return nil, nil, nil
	}
	for _, p := range d.Paths {
		err := filepath.WalkDir(filepath.Join(d.Dir, p), func(file string, e fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return nil // the entry is gone, or cannot be read and so cannot be removed
			case e.Type().IsRegular():
				files = append(files, file)
			}
			return ctx.Err()
		})
		if err != nil {
			return nil, nil, err
		}
	}
	return files, nil, nil
}

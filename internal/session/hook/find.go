package hook

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// find notes that the command removes or changes files below its first operands. If it selects
// only some of them, a snapshot is taken first.
func (r *reader) find(args []string, s *syntax.Stmt) {
	first := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "-") || a == "(" || a == "!" })
	if first < 0 {
		return // such a find only prints
	}
	dirs := args[:first]
	if len(dirs) == 0 {
		dirs = []string{r.dir}
	}
	r.findEffect(dirs, args[first:], s)
	deletes := slices.Contains(args, "-delete")
	goes, changes, filtered := deletes, deletes, false
	for i, a := range args {
		switch {
		case strings.HasSuffix(a, "name") || strings.HasSuffix(a, "path") || strings.HasSuffix(a, "regex") || a == "-newer" || a == "-size":
			filtered = true
		case strings.HasPrefix(a, "-exec") && i+1 < len(args):
			program := filepath.Base(args[i+1])
			deletes = deletes || program == "rm"
			goes = goes || deletes || program == "mv"
			changes = changes || goes || slices.Contains([]string{"sed", "perl", "truncate", "cp"}, program)
		}
	}
	if !changes {
		return
	}
	if filtered {
		r.plan.Names = append(r.plan.Names, r.found(dirs, args[first:])...)
		return
	}
	if deletes {
		r.discards("find", dirs...)
	}
	for _, d := range dirs {
		if d != "" {
			r.plan.Trees = append(r.plan.Trees, Tree{Dir: absolute(r.dir, d), Goes: goes})
		}
	}
}

// findsFor notes the effects of find with xargs behind it, which runs a command on what it finds, as
// -exec does.
func (r *reader) findsFor(xargs []string, s *syntax.Stmt) {
	if s == nil || s != r.pipedTo {
		return
	}
	call, is := r.pipedFrom.Cmd.(*syntax.CallExpr)
	if !is || len(r.pipedFrom.Redirs) > 0 {
		return
	}
	var words []string
	for _, w := range call.Args {
		words = append(words, r.expand(w)...)
	}
	_, command := prefixes["xargs"].read(xargs[1:])
	if words = strip(words); len(words) == 0 || filepath.Base(words[0]) != "find" || len(command) == 0 {
		return
	}
	tests := slices.DeleteFunc(words[1:], func(a string) bool { return a == "-print" || a == "-print0" })
	r.find(slices.Concat(tests, []string{"-exec"}, command, []string{"{}", "+"}), s)
}

// mostFound limits the files that found compares with the names in a command.
const mostFound = 20_000

// found lists the files whose names match the only test of names of find. With several tests, or
// alternatives, it lists none: the comparison after the command finds the changes.
func (r *reader) found(dirs, args []string) (files []string) {
	at := slices.IndexFunc(args, func(a string) bool { return a == "-name" || a == "-iname" })
	isOther := func(a string) bool {
		return a == "!" || a == "-not" || a == "-o" || a == "-or" || a == "-prune" || a == "," || strings.HasSuffix(a, "path") || strings.HasSuffix(a, "name") || strings.HasSuffix(a, "regex")
	}
	if at < 0 || at+1 >= len(args) || slices.ContainsFunc(slices.Delete(slices.Clone(args), at, at+1), isOther) {
		return nil
	}
	folded := func(text string) string {
		if args[at] == "-iname" {
			return strings.ToLower(text)
		}
		return text
	}
	pattern, seen := folded(args[at+1]), 0
	for _, dir := range dirs {
		if dir == "" {
			continue
		}
		filepath.WalkDir(absolute(r.dir, dir), func(file string, e fs.DirEntry, err error) error {
			if seen++; seen > mostFound {
				return filepath.SkipAll
			}
			if err != nil || e.IsDir() && e.Name() == ".git" {
				return filepath.SkipDir
			}
			if matched, _ := filepath.Match(pattern, folded(e.Name())); matched && !e.IsDir() {
				files = append(files, file)
			}
			return nil
		})
	}
	return files
}

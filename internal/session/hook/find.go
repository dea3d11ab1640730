package hook

import (
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
		return // it only prints
	}
	dirs := args[:first]
	if len(dirs) == 0 {
		dirs = []string{r.dir}
	}
	r.findEffect(dirs, args[first:], s)
	deletes := slices.Contains(args, "-delete")
	goes, changes := deletes, deletes
	for i, a := range args {
		switch {
		case strings.HasSuffix(a, "name") || strings.HasSuffix(a, "path") || strings.HasSuffix(a, "regex") || a == "-newer" || a == "-size":
			return
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
	if deletes {
		r.discards("find", dirs...)
	}
	for _, d := range dirs {
		if d != "" {
			r.plan.Trees = append(r.plan.Trees, Tree{Dir: absolute(r.dir, d), Goes: goes})
		}
	}
}

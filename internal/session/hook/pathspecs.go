package hook

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"lockkeeper/internal/git"
)

// spelled returns the words of a git command with the paths from the file of its option
// --pathspec-from-file. If the paths are unknown, it returns the words as they are.
func (r *reader) spelled(args []string, s *syntax.Stmt) []string {
	var rest []string
	file, end := "", "\n"
	for i := 0; i < len(args); i++ {
		name, value, joined := strings.Cut(args[i], "=")
		switch {
		case name == "--":
			return args
		case args[i] == "--pathspec-file-nul":
			end = "\x00"
		case name != "--pathspec-from-file":
			rest = append(rest, args[i])
		case joined:
			file = value
		case i+1 < len(args):
			i++
			file = args[i]
		}
	}
	if file == "" {
		return args
	}
	var paths []string
	for _, text := range r.content(file, s) {
		for line := range strings.SplitSeq(text, end) {
			if end == "\n" {
				line = strings.TrimSuffix(line, "\r")
			}
			if strings.HasPrefix(line, `"`) { // git reads escapes in it
				return args
			}
			if line != "" {
				paths = append(paths, line)
			}
		}
	}
	if len(paths) == 0 { // then git commit takes all staged changes
		return args
	}
	return slices.Concat(rest, []string{"--"}, paths)
}

// content returns the text of a file, or of standard input for -, that the current command reads. It
// returns nothing if the text is unknown, and two texts if the command so far may have written the file.
func (r *reader) content(name string, s *syntax.Stmt) (texts []string) {
	if name == "-" {
		if s != r.pipedTo || len(s.Redirs) > 0 {
			return nil
		}
		return []string{r.piped}
	}
	file := absolute(r.dir, name)
	writes := 0
	for _, t := range r.plan.Writes {
		if t.File == file {
			writes++
		}
	}
	if r.texts[file] != "" { // the command spells it out
		writes--
	}
	text := contentOf(file)
	if writes != 0 || !r.settled || r.loops > 0 || len(text) == longestPatch {
		return nil
	}
	return []string{r.texts[file], text}
}

// stashed returns the files of the stash whose patch a git command reads: its standard input is
// git stash show -p, and no earlier part of the command can have changed the stash.
func (r *reader) stashed(s *syntax.Stmt) []string {
	if s != r.pipedTo || len(s.Redirs) > 0 || !r.settled || r.loops > 0 || len(r.plan.Git) > 0 || r.variable("GIT_WORK_TREE")+r.variable("GIT_DIR") != "" || !isThere(filepath.Join(r.dir, ".git")) {
		return nil
	}
	call, is := r.pipedFrom.Cmd.(*syntax.CallExpr)
	if !is || len(call.Assigns) > 0 || len(r.pipedFrom.Redirs) > 0 {
		return nil
	}
	var args []string
	for _, w := range call.Args {
		args = append(args, r.expand(w)...)
	}
	if len(args) < 3 || !slices.Equal(args[:3], []string{"git", "stash", "show"}) {
		return nil
	}
	w := allowed("-p -u --patch --include-untracked").read(args[3:])
	if !w.known || !w.has("-p", "--patch") || len(w.all()) > 1 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), stashPatience)
	defer cancel()
	reach, err := git.NewWorkTree(r.dir, r.dir, os.Environ()).Reach(ctx, git.Asked{Act: "stash", Operands: append([]string{"apply"}, w.all()...)})
	if err != nil || reach.All {
		return nil
	}
	return reach.Files
}

// stashPatience is how long git may take to list the files of a stash.
const stashPatience = 3 * time.Second

package hook

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"lockkeeper/internal/git"
)

// An IndexAct is a git command that stages, unstages or commits changes, and the directory in
// which it runs.
type IndexAct struct {
	Name string
	Dir  string
	git.Selection
}

// indexed returns the changes that a git command stages, unstages or commits, and whether it
// does so at all. Commands that also rewrite files are in gitAct.
func indexed(act string, args []string) (q git.Selection, is bool) {
	w := indexGrammar(act).read(args)
	if w.has("-n", "--dry-run") && act != "commit" || w.has("--dry-run") {
		return q, false
	}
	paths := w.all()
	if act == "reset" && len(w.operands) > 0 && w.paths == nil && w.operands[0] == "HEAD" {
		paths = paths[1:]
	}
	unknown := w.has("--pathspec-from-file", "--stdin", "--index-info") || slices.Contains(paths, "") // they may be any paths
	if unknown {
		paths = nil
	}
	switch act {
	case "add", "stage":
		all, tracked := w.has("-A", "--all", "--no-ignore-removal"), w.has("-u", "--update")
		q = git.Selection{Tracked: true, Untracked: !tracked, Ignored: w.has("-f", "--force"), Paths: paths}
		return q, all || tracked || len(paths) > 0 || unknown || w.has("-p", "--patch", "-i", "--interactive", "-e", "--edit")
	case "commit":
		all := w.has("-a", "--all")
		q = git.Selection{Staged: true, Tracked: all || len(paths) > 0 || unknown}
		if !all && !w.has("-i", "--include") { // the other staged changes stay out of the commit
			q.Paths = paths
		}
		return q, true
	case "reset":
		return git.Selection{Staged: true, Paths: paths}, len(paths) > 0 && !w.has("--hard", "--soft", "--merge", "--keep")
	case "restore":
		return git.Selection{Staged: true, Paths: paths}, w.has("-S", "--staged") && (len(paths) > 0 || unknown)
	case "update-index":
		return git.Selection{Staged: true, Tracked: true, Untracked: w.has("--add"), Paths: paths}, len(paths) > 0 || unknown
	}
	return q, false
}

// indexGrammar returns the options that take a value.
func indexGrammar(act string) allowed {
	switch act {
	case "commit":
		return "-m= -F= -C= -c= -t= --message= --file= --reuse-message= --reedit-message= --template= --author= --date= --fixup= --squash= --trailer= --cleanup= --pathspec-from-file="
	case "restore":
		return "-s= --source= --pathspec-from-file="
	}
	return "--chmod= --cacheinfo= --index-version= --pathspec-from-file="
}

// indexed refuses a command that would stage, unstage or commit changes of others.
func (v *visit) indexed(ctx context.Context) error {
	for _, x := range v.codebase.index {
		if _, err := os.Stat(x.Dir); err != nil {
			continue // the command fails, because its directory is missing
		}
		files, err := git.NewWorkTree(x.Dir, x.Dir, os.Environ()).Selected(ctx, x.Selection)
		if isRefusal(err) { // there is no repository, so git refuses as well
			continue
		}
		if err != nil {
			return err
		}
		refused, err := v.session.Indexed(ctx, spelledOut(x), files)
		if v.refuse(refused...); err != nil || len(refused) > 0 {
			return err
		}
	}
	return nil
}

// spelledOut returns the command with the paths that it names, for messages.
func spelledOut(x IndexAct) string {
	if len(x.Paths) == 0 || len(x.Paths) > mostNamed {
		return x.Name
	}
	return x.Name + " " + filepath.ToSlash(strings.Join(x.Paths, " "))
}

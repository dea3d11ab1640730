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
	w := indexWords(act, args)
	if w.has("-n", "--dry-run") && act != "commit" || w.has("--dry-run") {
		return q, false
	}
	switch act {
	case "add", "stage":
		all, tracked := w.has("-A", "--all", "--no-ignore-removal"), w.has("-u", "--update")
		q = git.Selection{Tracked: true, Untracked: !tracked, Ignored: w.has("-f", "--force"), Paths: w.paths}
		return q, all || tracked || len(w.paths) > 0 || w.unknown || w.has("-p", "--patch", "-i", "--interactive", "-e", "--edit")
	case "commit":
		all := w.has("-a", "--all")
		q = git.Selection{Staged: true, Tracked: all || len(w.paths) > 0 || w.unknown}
		if !all && !w.has("-i", "--include") { // the other staged changes stay out of the commit
			q.Paths = w.paths
		}
		return q, true
	case "reset":
		return git.Selection{Staged: true, Paths: w.paths}, len(w.paths) > 0 && !w.has("--hard", "--soft", "--merge", "--keep")
	case "restore":
		return git.Selection{Staged: true, Paths: w.paths}, w.has("-S", "--staged") && (len(w.paths) > 0 || w.unknown)
	case "update-index":
		return git.Selection{Staged: true, Tracked: true, Untracked: w.has("--add"), Paths: w.paths}, len(w.paths) > 0 || w.unknown
	}
	return q, false
}

// operands are the arguments of a git command that concerns the index.
type operands struct {
	options []string
	paths   []string
	unknown bool // it names paths that are not on the command line
}

func (w operands) has(names ...string) bool { return has(w.options, names...) }

// valued lists the options that take the next word as their value: letters, and long names.
func valued(act string) (letters string, long []string) {
	switch act {
	case "commit":
		return "mFCct", []string{"--message", "--file", "--reuse-message", "--reedit-message", "--template", "--author", "--date", "--fixup", "--squash", "--trailer", "--cleanup"}
	case "add", "stage":
		return "", []string{"--chmod"}
	case "restore":
		return "s", []string{"--source"}
	case "update-index":
		return "", []string{"--chmod", "--cacheinfo", "--index-version"}
	}
	return "", nil
}

// indexWords separates the options and their values from the paths. Unknown words and paths in a
// file may be any path.
func indexWords(act string, args []string) (w operands) {
	letters, long := valued(act)
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--":
			w.paths = append(w.paths, args[i+1:]...)
			i = len(args)
		case slices.Contains(long, a):
			i++
		case strings.HasPrefix(a, "--pathspec-from-file"), a == "--stdin", a == "--index-info":
			w.unknown = true
			if a == "--pathspec-from-file" {
				i++
			}
		case strings.HasPrefix(a, "--"):
			w.options = append(w.options, a)
		case len(a) > 1 && a[0] == '-':
			at := strings.IndexAny(a, letters)
			if at < 0 {
				w.options = append(w.options, a)
				break
			}
			if at > 1 {
				w.options = append(w.options, a[:at])
			}
			if at == len(a)-1 { // the value is the next word
				i++
			}
		default:
			w.paths = append(w.paths, a)
		}
	}
	if act == "reset" && len(w.paths) > 0 && !slices.Contains(args, "--") && w.paths[0] == "HEAD" {
		w.paths = w.paths[1:]
	}
	if slices.Contains(w.paths, "") {
		w.unknown = true
	}
	if w.unknown {
		w.paths = nil
	}
	return w
}

// indexed refuses a command that would stage, unstage or commit changes of others.
func (v *visit) indexed(ctx context.Context) error {
	for _, x := range v.place.index {
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

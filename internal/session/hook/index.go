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

// indexOptions lists the options of the git commands that stage, unstage or commit changes. A
// command with another option, such as an abbreviated one, may concern all changes.
var indexOptions = map[string]allowed{
	"add":   addOptions,
	"stage": addOptions,
	"commit": "-a -q -v -s -n -o -i -p -e -z -m= -F= -C= -c= -t= -S? -u? --all --quiet --verbose --signoff --no-signoff --verify --no-verify --only --include --patch --interactive --edit --no-edit " +
		"--message= --file= --reuse-message= --reedit-message= --template= --gpg-sign? --no-gpg-sign --untracked-files? --amend --author= --date= --fixup= --squash= --trailer= --cleanup= --allow-empty " +
		"--allow-empty-message --reset-author --no-post-rewrite --status --no-status --dry-run --short --porcelain --long --branch --ahead-behind --no-ahead-behind --null " + pathsInFile,
	"reset":   "-q -N -p --quiet --no-quiet --intent-to-add --patch --mixed --soft --hard --merge --keep --refresh --no-refresh " + pathsInFile,
	"restore": "-S -W -s= -p -q -m --staged --worktree --source= --patch --quiet --progress --no-progress --ours --theirs --merge --conflict= --ignore-unmerged --overlay --no-overlay --recurse-submodules? --no-recurse-submodules --ignore-skip-worktree-bits " + pathsInFile,
	"update-index": "-q -z -g --add --remove --refresh --really-refresh --ignore-missing --ignore-submodules --unmerged --replace --info-only --force-remove --assume-unchanged --no-assume-unchanged --skip-worktree " +
		"--no-skip-worktree --fsmonitor-valid --no-fsmonitor-valid --chmod= --index-version= --show-index-version --split-index --no-split-index --untracked-cache --no-untracked-cache --verbose",
	"apply": "-p= -C= -R -3 -q -v -z --cached --index --check --stat --numstat --summary --apply --reverse --3way --ours --theirs --union --reject --whitespace= --directory= --include= --exclude= --recount --unidiff-zero " +
		"--inaccurate-eof --ignore-space-change --ignore-whitespace --allow-overlap --allow-empty --unsafe-paths --intent-to-add -N --quiet --verbose --no-add --binary",
}

const (
	addOptions  = "-A -u -v -n -f -N -p -i -e --all --no-all --no-ignore-removal --ignore-removal --update --verbose --dry-run --force --intent-to-add --patch --interactive --edit --refresh --ignore-errors --ignore-missing --sparse --renormalize --chmod= " + pathsInFile
	pathsInFile = "--pathspec-from-file= --pathspec-file-nul"
)

// indexed returns the changes that a git command stages, unstages or commits, and whether it
// does so at all. Commands that also rewrite files are in gitAct. patched lists the files of the
// patch that git apply gets.
func (r *reader) indexed(act string, args, patched []string) (q git.Selection, is bool) {
	grammar, known := indexOptions[act]
	if !known {
		return q, false
	}
	if act == "update-index" {
		args = cached(args)
	}
	w := grammar.read(args)
	unknown := w.has("--pathspec-from-file") || slices.Contains(w.all(), "") ||
		slices.ContainsFunc(w.options, func(o option) bool { _, is := grammar.kind(o.name); return !is })
	paths := w.all()
	if unknown {
		paths = nil
	}
	switch act {
	case "add", "stage":
		all, tracked := w.has("-A", "--all", "--no-ignore-removal"), w.has("-u", "--update")
		q = git.Selection{Tracked: true, Untracked: !tracked, Ignored: w.has("-f", "--force"), Unchanged: w.has("--chmod"), Paths: paths}
		is = all || tracked || len(paths) > 0 || unknown || w.has("-p", "--patch", "-i", "--interactive", "-e", "--edit", "--renormalize")
		return q, is && !w.has("--refresh")
	case "commit":
		all := w.has("-a", "--all", "-p", "--patch", "--interactive")
		q = git.Selection{Staged: true, Tracked: all || len(paths) > 0 || unknown}
		if !w.has("-a", "--all", "-i", "--include") { // otherwise the other staged changes are in the commit too
			q.Paths = paths
		}
		return q, true
	case "reset":
		paths = slices.Clone(w.paths)
		before := w.operands
		if !slices.Contains(args, "--") && len(before) > 0 && r.arePaths(before[:1]) {
			paths, before = before, nil
		} else if !slices.Contains(args, "--") && len(before) > 0 {
			paths, before = before[1:], before[:1]
		}
		q = git.Selection{Staged: true, Paths: paths}
		if len(before) > 0 {
			q.Source = before[0]
		}
		if unknown {
			q = git.Selection{Staged: true, Tracked: true}
		}
		return q, (len(q.Paths) > 0 || unknown || w.has("-p", "--patch")) && !w.has("--hard", "--soft", "--merge", "--keep")
	case "restore":
		q = git.Selection{Staged: true, Paths: paths}
		for _, from := range w.values("-s", "--source") {
			q.Source = from
		}
		if unknown {
			q = git.Selection{Staged: true, Tracked: true}
		}
		return q, w.has("-S", "--staged") && (len(paths) > 0 || unknown || w.has("-p", "--patch"))
	case "update-index": // update-index also changes entries of unchanged files
		q = git.Selection{Staged: true, Tracked: true, Untracked: w.has("--add"), Unchanged: true, Paths: paths}
		return q, len(paths) > 0 || unknown || w.has("-g")
	case "apply":
		if q = (git.Selection{Staged: true, Tracked: true, Untracked: true, Unchanged: true, Paths: literal(patched)}); len(patched) == 0 {
			q = r.ofPipe()
		}
		return q, w.has("--cached", "--index", "-3", "--3way") && applies(args)
	}
	return q, false
}

// everything selects all changes.
func everything() git.Selection {
	return git.Selection{Staged: true, Tracked: true, Untracked: true}
}

// ofPipe selects what a patch from an unknown program may change: the files that the program
// was given, or everything.
func (r *reader) ofPipe() git.Selection {
	q := everything()
	q.Paths = literal(slices.DeleteFunc(slices.Clone(r.fedBy), func(f string) bool { return !isThere(f) }))
	return q
}

// cached replaces each --cacheinfo of git update-index by the path in its value.
func cached(args []string) (list []string) {
	for i := 0; i < len(args); i++ {
		at, comma := i+1, 0
		if at < len(args) {
			comma = strings.LastIndexByte(args[at], ',')
		}
		switch {
		case args[i] != "--cacheinfo":
			list = append(list, args[i])
		case comma > 0:
			list = append(list, args[at][comma+1:])
			i = at
		case i+3 < len(args):
			list = append(list, args[i+3])
			i += 3
		}
	}
	return list
}

// asItIs marks a pathspec that matches only the path itself.
const asItIs = ":(literal)"

// literal returns pathspecs that match only the paths themselves.
func literal(paths []string) (list []string) {
	for _, p := range paths {
		list = append(list, asItIs+p)
	}
	return list
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
	var named []string
	for _, p := range x.Paths {
		p = strings.TrimPrefix(p, asItIs)
		if rel, err := filepath.Rel(x.Dir, p); err == nil && filepath.IsAbs(p) {
			p = rel
		}
		named = append(named, filepath.ToSlash(p))
	}
	return x.Name + " " + strings.Join(named, " ")
}

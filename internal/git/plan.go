package git

import (
	"context"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/git/gitcmd"
)

// A plan lists the steps of a commit. Its paths are relative to the top of the work tree.
type plan struct {
	paths []string // paths to commit
	fresh []string // paths that git does not know yet
	left  []Left
	known map[string]entry // the index at and below the wanted paths
}

// An entry is the version of a path in the index or in a commit.
type entry struct {
	version
	line string // in the format of git ls-files -s and git update-index --index-info
}

// These are the modes of entries that are not files.
const (
	modeTree       = "040000"
	modeRepository = "160000"
)

func (r *Repo) plan(ctx context.Context, paths []string) (*plan, error) {
	wanted, err := r.fromTop(paths)
	if err != nil {
		return nil, err
	}
	s, err := r.State(ctx)
	if err != nil {
		return nil, err
	}
	p := &plan{}
	if p.known, err = r.entries(ctx, wanted, "ls-files", "-s", "-z", "--"); err != nil {
		return nil, err
	}
	committed, err := r.inCommit(ctx, s.Head, wanted)
	if err != nil {
		return nil, err
	}
	var replaced []string
	for _, at := range wanted {
		info, err := os.Lstat(filepath.Join(r.top, filepath.FromSlash(at)))
		if err != nil && !isGone(err) {
			return nil, err
		}
		_, inIndex := p.known[at]
		_, inHead := committed[at]
		isKnown := inIndex || inHead
		reason, err := r.foreign(at)
		switch {
		case err != nil:
			return nil, err
		case reason != "":
			p.leave(r, at, reason)
		case p.known[at].mode == modeRepository || committed[at].mode == modeRepository:
			p.leave(r, at, "a separate repository")
		case info == nil && !isKnown: // the path was created and removed between two commits
		case info == nil:
			p.paths = append(p.paths, at)
		case info.IsDir():
			replaced = append(replaced, at)
		case !info.Mode().IsRegular() && info.Mode().Type() != fs.ModeSymlink:
			p.leave(r, at, "neither a file nor a link")
		case isKnown:
			p.paths = append(p.paths, at)
		default:
			p.fresh = append(p.fresh, at)
		}
	}
	if err := r.leaveIgnored(ctx, p); err != nil {
		return nil, err
	}
	p.paths = append(p.paths, p.fresh...)
	for _, at := range replaced {
		p.leaveDir(r, at)
	}
	return p, nil
}

// fromTop returns paths relative to the top of the work tree, without duplicates.
func (r *Repo) fromTop(paths []string) ([]string, error) {
	wanted := make([]string, 0, len(paths))
	for _, at := range paths {
		if !filepath.IsLocal(at) || path.Clean(at) != at || at == "." || strings.Contains(at, "\x00") {
			return nil, &lockkeeper.InputError{Field: "path to commit", Value: at, Reason: "not a clean path below the root"}
		}
		wanted = append(wanted, r.prefix+at)
	}
	slices.Sort(wanted)
	return slices.Compact(wanted), nil
}

func (p *plan) leave(r *Repo, at, reason string) {
	p.left = append(p.left, Left{Path: strings.TrimPrefix(at, r.prefix), Reason: reason})
}

// leaveDir omits a directory, because git would commit everything below it. If a file was there
// before, a commit of a path below the directory also removes that file. Without such a path git
// cannot commit the removal.
func (p *plan) leaveDir(r *Repo, at string) {
	isBelow := func(other string) bool { return strings.HasPrefix(other, at+"/") }
	if !slices.ContainsFunc(p.paths, isBelow) {
		p.leave(r, at, "a directory")
	}
}

// foreign returns the reason why a path does not belong to this repository, or "" if it does.
func (r *Repo) foreign(at string) (string, error) {
	for dir := path.Dir(at); dir != "."; dir = path.Dir(dir) {
		full := filepath.Join(r.top, filepath.FromSlash(dir))
		info, err := os.Lstat(full)
		if isGone(err) {
			continue
		}
		if err != nil {
			return "", err
		}
		if info.Mode().Type() == fs.ModeSymlink {
			return "it is behind the link " + dir, nil
		}
		switch _, err := os.Lstat(filepath.Join(full, ".git")); {
		case err == nil:
			return "it belongs to the repository in " + dir, nil
		case !isGone(err):
			return "", err
		}
	}
	return "", nil
}

// leaveIgnored omits new files that git ignores.
func (r *Repo) leaveIgnored(ctx context.Context, p *plan) error {
	if len(p.fresh) == 0 {
		return nil
	}
	ignored, err := r.ignored(ctx, p.fresh)
	if err != nil {
		return err
	}
	for at := range ignored {
		p.leave(r, at, "git ignores it")
	}
	p.fresh = slices.DeleteFunc(p.fresh, func(at string) bool { return ignored[at] })
	return nil
}

// ignored returns which of the paths from the top git ignores.
func (r *Repo) ignored(ctx context.Context, paths []string) (map[string]bool, error) {
	const here = "./" // check-ignore supports neither literal pathspecs nor patterns
	out, err := r.git.Output(ctx, list(prefixed(here, paths)), "check-ignore", "-z", "--stdin")
	if err != nil && exitOf(err) != 1 { // exit code 1 means that none is ignored
		return nil, err
	}
	ignored := map[string]bool{}
	for _, spelled := range fields(out) {
		ignored[strings.TrimPrefix(spelled, here)] = true
	}
	return ignored, nil
}

// Ignored returns which of the paths below the root git ignores. They need not exist.
func (r *Repo) Ignored(ctx context.Context, paths []string) (map[string]bool, error) {
	found, err := r.ignored(ctx, prefixed(r.prefix, paths))
	ignored := map[string]bool{}
	for at := range found {
		ignored[strings.TrimPrefix(at, r.prefix)] = true
	}
	return ignored, err
}

// inCommit returns the entries of a commit at the paths, without directories.
func (r *Repo) inCommit(ctx context.Context, commit string, paths []string) (map[string]entry, error) {
	if commit == "" {
		return nil, nil
	}
	found, err := r.entries(ctx, paths, "ls-tree", "-z", commit, "--")
	for at, e := range found {
		if e.mode == modeTree {
			delete(found, at)
		}
	}
	return found, err
}

// maxArgs bounds the bytes of paths on one command line.
const maxArgs = 64 << 10

// entries runs a git command for paths, as many at a time as fit on a command line. Each line of
// output begins with a mode and ends with a tab and the path.
func (r *Repo) entries(ctx context.Context, paths []string, args ...string) (map[string]entry, error) {
	found := map[string]entry{}
	for some := range chunks(paths) {
		out, err := r.git.Output(ctx, "", slices.Concat(args, prefixed(literal, some))...)
		if err != nil {
			return nil, err
		}
		for _, line := range fields(out) {
			about, at, _ := strings.Cut(line, "\t")
			parts := strings.Fields(about)
			e := entry{line: line}
			e.mode = parts[0]
			e.hash = parts[slices.IndexFunc(parts, isHash)]
			found[at] = e
		}
	}
	return found, nil
}

// chunks splits paths into lists that fit on a command line.
func chunks(paths []string) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for len(paths) > 0 {
			n, size := 0, 0
			for n < len(paths) && (n == 0 || size+len(paths[n]) < maxArgs) {
				size += len(paths[n]) + 1
				n++
			}
			if !yield(paths[:n]) {
				return
			}
			paths = paths[n:]
		}
	}
}

// announce adds new files to the index without content, as git commit --only requires.
func (r *Repo) announce(ctx context.Context, p *plan) error {
	if len(p.fresh) == 0 {
		return nil
	}
	_, err := r.change(ctx, list(prefixed(literal, p.fresh)), "add", "--intent-to-add", "--pathspec-from-file=-", "--pathspec-file-nul")
	return err
}

// unannounce undoes announce, even if ctx has ended or a person has begun an operation.
// It keeps files that another commit has added meanwhile.
func (r *Repo) unannounce(ctx context.Context, p *plan) error {
	if len(p.fresh) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.patience+gitcmd.Patience)
	defer cancel()
	s, err := r.State(ctx)
	if err != nil {
		return err
	}
	committed, err := r.inCommit(ctx, s.Head, p.fresh)
	if err != nil {
		return err
	}
	var remove []string
	for _, at := range p.fresh {
		if _, ok := committed[at]; !ok {
			remove = append(remove, at)
		}
	}
	anyway := func() error { return nil }
	if len(remove) > 0 {
		_, err = r.locked(ctx, anyway, list(remove), "update-index", "-z", "--force-remove", "--stdin")
	}
	if restore := p.displacedBy(remove); err == nil && len(restore) > 0 {
		_, err = r.locked(ctx, anyway, list(restore), "update-index", "-z", "--index-info")
	}
	return err
}

// displacedBy lists the entries of the index that announce displaced: a file where a new
// file needs a directory, or files below a new file.
func (p *plan) displacedBy(fresh []string) (lines []string) {
	isFresh := map[string]bool{}
	above := map[string]bool{}
	for _, at := range fresh {
		isFresh[at] = true
		for dir := path.Dir(at); dir != "."; dir = path.Dir(dir) {
			above[dir] = true
		}
	}
	for at, e := range p.known {
		displaced := above[at]
		for dir := path.Dir(at); dir != "."; dir = path.Dir(dir) {
			displaced = displaced || isFresh[dir]
		}
		if displaced {
			lines = append(lines, e.line)
		}
	}
	return lines
}

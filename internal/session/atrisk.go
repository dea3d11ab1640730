package session

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/git"
	"lockkeeper/internal/git/gitcmd"
	"lockkeeper/internal/project"
	"lockkeeper/internal/session/snapshot"
)

// AtRisk lists the files of the codebase that git could not restore: untracked files, and files
// that differ from the committed version. It omits directories that git ignores as a whole,
// because programs fill them. Without git, it lists all files outside such directories.
func AtRisk(ctx context.Context, a *project.Project) ([]snapshot.Candidate, error) {
	r := &risk{root: a.Root.Dir()}
	err := r.ask(ctx, r.root, 0)
	if isInput(err) { // the codebase is in no repository, or git is missing
		r.list = nil
		err = r.walk(ctx, r.root)
	}
	return r.list, err
}

func isInput(err error) bool { return lockkeeper.CodeOf(err) == lockkeeper.CodeInput }

// risk collects files that are at risk.
type risk struct {
	root string
	list []snapshot.Candidate
}

// mostNested limits the depth of nested repositories.
const mostNested = 4

// add adds an absolute file.
func (r *risk) add(file string, ignored bool) {
	rel, err := filepath.Rel(r.root, file)
	if err != nil || !filepath.IsLocal(rel) || project.IsOwn(rel) || ignored && slices.Contains(derived, path.Ext(rel)) {
		return
	}
	r.list = append(r.list, snapshot.Candidate{Path: filepath.ToSlash(rel), Ignored: ignored})
}

// derived lists the extensions of files that compilers write next to their sources.
var derived = []string{".o", ".a", ".so", ".obj", ".pyc", ".pyo", ".class", ".beam", ".hi", ".cmi", ".cmo", ".cmx", ".tsbuildinfo"}

// ask lists the files at risk in a directory and in its nested repositories, as git reports them.
func (r *risk) ask(ctx context.Context, dir string, depth int) error {
	found, err := git.NewWorkTree(dir, dir, gitcmd.Outside(os.Environ())).AtRisk(ctx)
	if err != nil {
		return err
	}
	for _, s := range found {
		state, file := s.State, s.Path
		inner := strings.HasSuffix(file, "/")
		switch {
		case state == "!!" && strings.HasPrefix(dir+"/", file): // a repository around this directory ignores all of it
			return &lockkeeper.InputError{Field: "git repository", Value: dir, Reason: "git ignores " + dir, Next: "run it in a root that is a git work tree"}
		case state == "!!" && inner: // programs, not people, fill ignored directories
		case inner || state != "??" && state != "!!" && isDirectory(file): // the file is a nested repository
			if depth < mostNested {
				if err := r.ask(ctx, strings.TrimSuffix(file, "/"), depth+1); err != nil && !isInput(err) {
					return err
				}
			}
		default:
			r.add(file, state == "!!")
		}
	}
	return nil
}

func isDirectory(file string) bool {
	info, err := os.Lstat(file)
	return err == nil && info.IsDir()
}

// filled lists the directories that programs fill, for trees without git.
var filled = []string{"node_modules", "__pycache__", ".venv", "venv", ".tox", ".cache", ".mypy_cache", ".pytest_cache", ".gradle", ".next", lockkeeper.GitTarget, ".hg", ".svn", project.DirName}

// walk lists all files below a directory. In nested repositories it lists what git reports. It
// skips entries that it cannot read, because those cannot be removed or are gone.
func (r *risk) walk(ctx context.Context, dir string) error {
	return filepath.WalkDir(dir, func(file string, e fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
			return nil
		case err != nil:
			return err
		case e.IsDir() && slices.Contains(filled, e.Name()):
			return fs.SkipDir
		case e.IsDir() && isDirectory(filepath.Join(file, lockkeeper.GitTarget)):
			if err := r.ask(ctx, file, 1); err == nil || !isInput(err) {
				return errors.Join(err, fs.SkipDir)
			}
		case e.Type().IsRegular():
			r.add(file, false)
		}
		return nil
	})
}

package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"lockkeeper/internal/git/gitcmd"
)

// makeRepositories makes private repositories for the tree and repositories nested in it.
func (w *Workspace) makeRepositories(ctx context.Context, from *origin, paths []string) error {
	if err := os.Mkdir(filepath.Join(w.dir, repositoriesName), 0o700); err != nil {
		return err
	}
	for _, path := range paths {
		if !w.base.find(path).isFolder() {
			continue // the directory was removed meanwhile
		}
		r, err := openRepository(ctx, filepath.Join(w.root, path))
		if err == nil {
			var commit string
			commit, err = r.copyTo(ctx, w.template(path), w.linkedIn(path))
			if path == "." {
				w.commit = cmp.Or(w.commit, commit)
			}
		}
		if err == nil {
			err = w.placeRepository(ctx, path)
		}
		var refused *gitcmd.Error
		switch {
		case err == nil:
		case path != "." && errors.As(err, &refused):
			if err := os.RemoveAll(w.template(path)); err != nil { // the template is incomplete
				return err
			}
			from.report(below(path, gitName), "not copied: git cannot read it: "+refused.Says)
		default:
			return fmt.Errorf("make a private repository of %s: %w", filepath.Join(w.root, path), err)
		}
	}
	w.noteOddities(from)
	return nil
}

// linkedIn lists the linked folders in a repository, relative to it.
func (w *Workspace) linkedIn(path string) (list []string) {
	w.base.find(path).each(path, func(at string, n *node) {
		if w.isLinked(at, n) {
			list = append(list, strings.TrimPrefix(strings.TrimPrefix(at, path), "/"))
		}
	})
	return list
}

// positionTries bounds how often a changing repository is read.
const positionTries = 5

// stateFiles are files of a work tree that git status reads.
var stateFiles = []string{"MERGE_HEAD", "MERGE_MODE", "MERGE_MSG", "CHERRY_PICK_HEAD", "REVERT_HEAD"}

// copyTo makes a repository that reads the objects of the shared one and has everything else
// of its own. It does not copy hooks, remotes, stashes, reflogs and most settings.
func (r *repository) copyTo(ctx context.Context, to string, linked []string) (commit string, err error) {
	for _, dir := range []string{"objects/info", "objects/pack", "refs/heads", "refs/tags", "info"} {
		if err := os.MkdirAll(filepath.Join(to, dir), 0o755); err != nil {
			return "", err
		}
	}
	config, err := r.config(ctx)
	if err != nil {
		return "", err
	}
	at, err := r.position(ctx)
	for range positionTries {
		if err == nil {
			err = r.copyState(ctx, to)
		}
		if err != nil {
			return "", err
		}
		var now position
		if now, err = r.position(ctx); now == at {
			break
		}
		at = now
	}
	if err != nil {
		return "", err
	}
	for name, text := range map[string]string{
		"HEAD": at.head + "\n", "config": config, "packed-refs": withoutStash(at.refs),
		"objects/info/alternates": gitQuote(filepath.Join(r.common, "objects")) + "\n",
	} {
		if err := os.WriteFile(filepath.Join(to, name), []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	return at.commit, exclude(to, linked)
}

// copyState copies the index, the shared part of a split index, and the other state files of
// the work tree.
func (r *repository) copyState(ctx context.Context, to string) error {
	from := map[string]string{}
	for _, name := range append([]string{"index", "info/sparse-checkout"}, stateFiles...) {
		from[name] = r.gitDir
	}
	for _, name := range []string{"info/exclude", "info/attributes", "info/grafts", "shallow"} {
		from[name] = r.common
	}
	if r.gitDir == r.common {
		from["info/sparse-checkout"] = r.common
	}
	parts, err := filepath.Glob(escapeGlob(r.gitDir) + "/sharedindex.*")
	if err != nil {
		return err
	}
	for _, part := range parts {
		from[filepath.Base(part)] = r.gitDir
	}
	h := newWorker(ctx)
	for name, dir := range from {
		if err := h.copyOver(filepath.Join(dir, name), filepath.Join(to, name)); err != nil {
			return err
		}
	}
	return nil
}

// copyOver replaces a file by a copy of another one, including its time. Git compares the
// time of its index with those of the files. A missing source removes the file.
func (h *worker) copyOver(from, to string) error {
	if err := unix.Unlink(to); err != nil && !isGone(err) {
		return pathError("remove", to, err)
	}
	real, err := filepath.EvalSymlinks(from) // from may be a link
	var seen fileStat
	if err == nil {
		seen, err = statAt(unix.AT_FDCWD, real)
	}
	if err == nil {
		_, err = h.copyFile(unix.AT_FDCWD, real, seen, unix.AT_FDCWD, to, &means{})
	}
	if isGone(err) || errors.Is(err, errChanged) { // the source changed while it was copied, so the position has changed, too
		return nil
	}
	return pathError("copy", from, err)
}

func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// withoutStash omits the stash, which belongs to a person and is useless without its reflog.
func withoutStash(refs string) string {
	var b strings.Builder
	for line := range strings.Lines(refs + "\n") {
		if !strings.HasSuffix(line, " refs/stash\n") && line != "\n" {
			b.WriteString(line)
		}
	}
	return b.String()
}

// exclude hides linked folders from git, because a rule for a directory does not match a link.
func exclude(to string, linked []string) error {
	if len(linked) == 0 {
		return nil
	}
	name := filepath.Join(to, "info", "exclude")
	has, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	text := strings.TrimSuffix(string(has), "\n") + "\n"
	for _, path := range linked {
		text += "/" + escapeGlob(path) + "\n"
	}
	return os.WriteFile(name, []byte(text), 0o644)
}

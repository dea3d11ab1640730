package git

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockkeeper/internal/git/gittest"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// person runs git as a person would.
func person(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := try(dir, args...)
	if err != nil {
		t.Fatalf("git %q in %s: %v\n%s", args, dir, err, out)
	}
	return out
}

func try(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = dir, gittest.Env()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// plant creates files from paths and contents. A content that begins with -> is a link.
func plant(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for _, path := range slices.Sorted(maps.Keys(files)) {
		file := filepath.Join(root, path)
		must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		if link, ok := strings.CutPrefix(files[path], "->"); ok {
			must(t, os.Symlink(link, file))
		} else {
			must(t, os.WriteFile(file, []byte(files[path]), 0o644))
		}
	}
}

func remove(t *testing.T, root string, paths ...string) {
	t.Helper()
	for _, path := range paths {
		must(t, os.RemoveAll(filepath.Join(root, path)))
	}
}

// newTree creates a work tree with one commit of these files, on branch main.
func newTree(t *testing.T, files map[string]string, args ...string) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "shared")
	must(t, os.Mkdir(root, 0o755))
	person(t, root, append([]string{"init", "-q", "-b", "main"}, args...)...)
	plant(t, root, files)
	person(t, root, "add", "-A")
	person(t, root, "commit", "-q", "--allow-empty", "-m", "first")
	return root
}

func open(t *testing.T, root string) *Repo {
	t.Helper()
	r, err := Open(t.Context(), root, gittest.Env())
	must(t, err)
	return r
}

// commit makes a commit that must succeed.
func commit(t *testing.T, r *Repo, c Commit) Committed {
	t.Helper()
	if c.Subject == "" {
		c.Subject = "A batch"
	}
	done, err := r.Commit(t.Context(), c)
	must(t, err)
	return done
}

// inCommit lists the changes of a commit: a letter, a space, the path.
func inCommit(t *testing.T, dir, hash string) []string {
	t.Helper()
	parts := fields(person(t, dir, "diff-tree", "-r", "-z", "--root", "--no-commit-id", "--name-status", "--no-renames", hash))
	var list []string
	for i := 0; i+1 < len(parts); i += 2 {
		list = append(list, parts[i]+" "+parts[i+1])
	}
	slices.Sort(list)
	return list
}

// between lists the paths that differ between two commits.
func between(t *testing.T, dir, from, to string) []string {
	t.Helper()
	return fields(person(t, dir, "diff-tree", "-r", "-z", "--name-only", "--no-renames", from, to))
}

// workTreeState returns the state of a work tree that a person would miss: staged changes with
// their content, and other changes.
func workTreeState(t *testing.T, dir string) string {
	t.Helper()
	return person(t, dir, "ls-files", "-s", "-t", "--debug") + "\n" + status(t, dir) + "\n" + person(t, dir, "diff", "--cached")
}

func status(t *testing.T, dir string) string {
	t.Helper()
	return strings.ReplaceAll(person(t, dir, "status", "--porcelain", "-z", "-uall", "--no-renames"), "\x00", "\n")
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if g, ok := got.([]string); ok && slices.Equal(g, want.([]string)) {
		return
	} else if !ok && got == want {
		return
	}
	t.Errorf("%s: got %q, want %q", what, got, want)
}

// hook installs a hook in the repository.
func hook(t *testing.T, r *Repo, name, script string) {
	t.Helper()
	dir := filepath.Join(r.common, "hooks")
	must(t, os.MkdirAll(dir, 0o755))
	must(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
}

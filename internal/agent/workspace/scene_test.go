package workspace

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"lockkeeper/internal/git/gittest"
)

// torture returns the factor by which random tests run longer than usual.
func torture() int {
	n, err := strconv.Atoi(os.Getenv("LOCKKEEPER_TORTURE"))
	if err != nil {
		return 1
	}
	return max(1, n)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// write creates a file and its directories.
func write(t *testing.T, root, path, content string) {
	t.Helper()
	file := filepath.Join(root, path)
	must(t, os.MkdirAll(filepath.Dir(file), 0o755))
	must(t, os.WriteFile(file, []byte(content), 0o644))
}

func read(t *testing.T, root, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, path))
	must(t, err)
	return string(content)
}

// plant creates a tree from paths and contents. A path that ends in / is a directory. A content
// that begins with -> is a link.
func plant(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for _, path := range slices.Sorted(maps.Keys(files)) {
		content := files[path]
		link, isLink := strings.CutPrefix(content, "->")
		switch {
		case strings.HasSuffix(path, "/"):
			must(t, os.MkdirAll(filepath.Join(root, path), 0o755))
		case isLink:
			must(t, os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755))
			must(t, os.Symlink(link, filepath.Join(root, path)))
		default:
			write(t, root, path, content)
		}
	}
}

// git runs git as a person would, independent of the configuration of the machine.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := tryGit(dir, nil, args...)
	if err != nil {
		t.Fatalf("git %v in %s: %v\n%s", args, dir, err, out)
	}
	return out
}

func tryGit(dir string, environ []string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	if cmd.Env = environ; environ == nil {
		cmd.Env = gittest.Env()
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// newRepository creates a shared tree with files in every state that git status reports.
func newRepository(t *testing.T, args ...string) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "shared")
	must(t, os.Mkdir(root, 0o755))
	git(t, root, append([]string{"init", "-q", "-b", "main"}, args...)...)
	plant(t, root, map[string]string{
		".gitignore": "*.log\nbuild/\n/.lockkeeper\n", "app/models/user.rb": "class User\nend\n", "app/models/post.rb": "class Post\nend\n",
		"app/run.sh": "#!/bin/sh\n", "gone.rb": "x\n", "staged.rb": "1\n", "both.rb": "1\n", "docs/link": "->../app/models",
	})
	must(t, os.Chmod(filepath.Join(root, "app/run.sh"), 0o755))
	git(t, root, "add", ".")
	git(t, root, "commit", "-q", "-m", "first")
	git(t, root, "tag", "v1")
	git(t, root, "branch", "other")
	plant(t, root, map[string]string{
		"app/models/post.rb": "class Post # edited\nend\n", "new.rb": "untracked\n", "trace.log": "ignored\n", "build/out": "ignored\n",
		".lockkeeper/state.db": "not for agents", "staged.rb": "2\n", "both.rb": "2\n",
	})
	git(t, root, "add", "staged.rb", "both.rb")
	write(t, root, "both.rb", "3\n")
	must(t, os.Remove(filepath.Join(root, "gone.rb")))
	return root
}

// open makes a workspace and closes it at the end of the test.
func open(t *testing.T, o Options) *Workspace {
	t.Helper()
	if o.Dir == "" {
		o.Dir = filepath.Join(t.TempDir(), "workspaces")
	}
	w := makeEither(t, o)
	t.Cleanup(func() {
		if err := w.Close(context.Background(), false); err != nil {
			t.Error(err)
		}
	})
	return w
}

// contents returns the type, permissions and content of every path of a tree.
func contents(t *testing.T, root string, without ...string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		path, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		if slices.Contains(without, path) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content := ""
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			content = string(data)
		case info.Mode().Type() == fs.ModeSymlink:
			if content, err = os.Readlink(file); err != nil {
				return err
			}
		}
		all[path] = info.Mode().String() + " " + content
		return nil
	})
	must(t, err)
	return all
}

// same fails the test if two snapshots differ.
func same(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	if differences := differ(got, want); len(differences) > 0 {
		t.Errorf("%s:\n  %s", what, strings.Join(differences, "\n  "))
	}
}

func differ(got, want map[string]string) (list []string) {
	brief := func(s string) string {
		if len(s) > 80 {
			s = s[:80] + "…"
		}
		return strconv.Quote(s)
	}
	for _, path := range slices.Sorted(maps.Keys(want)) {
		if has, ok := got[path]; !ok {
			list = append(list, fmt.Sprintf("%q is missing", path))
		} else if has != want[path] {
			list = append(list, fmt.Sprintf("%q is %s, not %s", path, brief(has), brief(want[path])))
		}
	}
	for path := range got {
		if _, ok := want[path]; !ok {
			list = append(list, fmt.Sprintf("%q is too much: %s", path, brief(got[path])))
		}
	}
	return list[:min(len(list), 20)]
}

// changes lists the changes of a workspace, as "kind path".
func changes(t *testing.T, w *Workspace) []string {
	t.Helper()
	found, err := w.Changes(t.Context())
	must(t, err)
	var list []string
	for _, c := range found {
		list = append(list, string(c.Kind)+" "+c.Path)
	}
	return list
}

func wantChanges(t *testing.T, w *Workspace, want ...string) {
	t.Helper()
	if got := changes(t, w); !slices.Equal(got, want) {
		t.Errorf("changes are\n  %s\nand should be\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// sh runs a script as an agent would.
func sh(t *testing.T, w *Workspace, script string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", script)
	cmd.Dir, cmd.Env = tree(t, w), w.Env(os.Environ())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}

package workspace

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Restore undoes everything that an agent did to the private repositories and to the other names
// outside the tree. Git then sees the same as at first.
//
// shows: GP-5
func TestRestoreRepositories(t *testing.T) {
	root := newRepository(t)
	must(t, os.Mkdir(filepath.Join(root, "nested"), 0o755))
	git(t, root, "init", "-q", "-b", "main", "nested")
	write(t, root, "nested/file", "nested\n")
	git(t, filepath.Join(root, "nested"), "add", "-A")
	git(t, filepath.Join(root, "nested"), "commit", "-qm", "first")
	for name, script := range map[string]string{
		"configuration":      `printf '#!/bin/sh\necho hacked > both.rb\n' > .git/fsm; chmod +x .git/fsm; git config core.fsmonitor "$PWD/.git/fsm"`,
		"hooks":              `mkdir -p .git/hooks; printf '#!/bin/sh\n' > .git/hooks/post-index-change; chmod +x .git/hooks/post-index-change`,
		"index":              `git rm -q --cached staged.rb; git add new.rb`,
		"head":               `echo 'ref: refs/heads/other' > .git/HEAD`,
		"commits":            `git -c user.name=a -c user.email=a@example.org commit -qam all; git tag -d v1; git branch -D other`,
		"extra files":        `echo x > .git/x; mkdir -p .git/a/b/c; chmod 0 .git/a; mkdir .lockkeeper; echo y > .lockkeeper/y`,
		"no repository":      `rm -rf .git`,
		"a link instead":     `mv .git "$HOME/elsewhere-$$" 2>/dev/null || rm -rf .git; ln -s ../.. .git`,
		"a file instead":     `rm -rf .git; echo gitdir: /tmp > .git`,
		"no rights":          `chmod 0 .git`,
		"nested":             `printf '#!/bin/sh\n' > nested/.git/fsm; git -C nested config core.fsmonitor x; rm nested/.git/HEAD`,
		"nested, moved away": `mv nested elsewhere`,
		"nested, a link":     `rm -rf nested; ln -s app nested`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("HOME", t.TempDir())
			w := open(t, Options{Root: root})
			before := contents(t, tree(t, w))
			sh(t, w, script)
			takeAll(t, w)
			must(t, w.Restore(t.Context()))
			same(t, "the workspace", contents(t, tree(t, w)), before)
			sameStatus(t, w, root, ".")
			sameStatus(t, w, root, "nested")
			entries, err := os.ReadDir(w.Home())
			must(t, err)
			for _, e := range entries {
				if e.Name() == swapName {
					t.Error("what was replaced is left")
				}
			}
		})
	}
}

// A tree without a repository has no repository after Restore.
func TestRestoreWithoutRepository(t *testing.T) {
	root := t.TempDir()
	write(t, root, "a", "a\n")
	w := open(t, Options{Root: root})
	before := contents(t, tree(t, w))
	sh(t, w, "git init -q; git config core.fsmonitor x; mkdir .lockkeeper; echo x > .lockkeeper/x")
	must(t, w.Restore(t.Context()))
	same(t, "the workspace", contents(t, tree(t, w)), before)
}

// Restore also works for an adopted workspace, and for one of an earlier version, which kept no
// repositories.
func TestRestoreAdopted(t *testing.T) {
	for name, forget := range map[string]bool{"kept": false, "not kept": true} {
		t.Run(name, func(t *testing.T) {
			root := newRepository(t)
			w := open(t, Options{Root: root})
			sh(t, w, "git config core.fsmonitor x; echo 'ref: refs/heads/other' > .git/HEAD")
			must(t, w.Close(t.Context(), true))
			if forget {
				must(t, os.RemoveAll(filepath.Join(w.Home(), repositoriesName)))
			}
			w, err := Adopt(w.Home(), nil)
			must(t, err)
			must(t, w.Restore(t.Context()))
			sameStatus(t, w, root, ".")
			must(t, w.Close(t.Context(), false))
		})
	}
}

// A file with the copied content also has the copied time. So an agent cannot make a build tool
// take an old result for a new one.
func TestTimesAreRestored(t *testing.T) {
	root := newRepository(t)

	old := int64(1_600_000_000)
	must(t, os.Chtimes(filepath.Join(root, "new.rb"), time.Unix(old, 0), time.Unix(old, 0)))
	w := open(t, Options{Root: root})
	sh(t, w, "touch new.rb; touch -d 2001-01-01 app/models/user.rb")
	wantChanges(t, w)
	for _, path := range []string{"new.rb", "app/models/user.rb"} {
		shared, err := os.Stat(filepath.Join(root, path))
		must(t, err)
		mine, err := os.Stat(filepath.Join(tree(t, w), path))
		must(t, err)
		if !shared.ModTime().Equal(mine.ModTime()) {
			t.Errorf("%s is of %s, and should be of %s", path, mine.ModTime(), shared.ModTime())
		}
	}
	wantChanges(t, w)
}

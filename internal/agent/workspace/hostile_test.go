package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// uses returns all methods of a workspace except Close.
func uses(t *testing.T) map[string]func(w *Workspace) error {
	return map[string]func(w *Workspace) error{
		"Changes": func(w *Workspace) error { _, err := w.Changes(t.Context()); return err },
		"TakeOut": func(w *Workspace) error { _, err := w.TakeOut(t.Context(), []string{"."}); return err },
		"Refresh": func(w *Workspace) error { _, _, err := w.Refresh(t.Context(), []string{"."}); return err },
		"CatchUp": func(w *Workspace) error { _, _, err := w.CatchUp(t.Context()); return err },
		"Put":     func(w *Workspace) error { return w.Put(t.Context(), "a.rb", 0o644, strings.NewReader("laid")) },
		"Delete":  func(w *Workspace) error { return w.Delete(t.Context(), "a.rb") },
		"Open":    func(w *Workspace) error { f, err := w.Open("a.rb"); return errors.Join(err, f.Close()) },
	}
}

// If an agent removes or replaces its workspace, only the workspace is lost.
//
// shows: GP-5
func TestReplacedWorkspaces(t *testing.T) {
	onlyCopies(t, "nobody can replace the place of a mount")
	root := filepath.Join(t.TempDir(), treeName) // a link above it could be mistaken for the workspace
	plant(t, root, map[string]string{"a.rb": "one\n", "dir/x.rb": "x\n"})
	before := contents(t, root)
	for name, replace := range map[string]func(w *Workspace) error{
		"tree removed": func(w *Workspace) error { return os.RemoveAll(tree(t, w)) },
		"tree made again": func(w *Workspace) error {
			return errors.Join(os.RemoveAll(tree(t, w)), os.MkdirAll(filepath.Join(tree(t, w), "dir"), 0o755))
		},
		"tree a link to the shared one": func(w *Workspace) error { return errors.Join(os.RemoveAll(tree(t, w)), os.Symlink(root, tree(t, w))) },
		"tree moved away, and a link": func(w *Workspace) error {
			return errors.Join(os.Rename(tree(t, w), tree(t, w)+"2"), os.Symlink(root, tree(t, w)))
		},
		"home removed": func(w *Workspace) error { return os.RemoveAll(w.Home()) },
		"home a link to what is above the shared tree": func(w *Workspace) error {
			return errors.Join(os.Rename(w.Home(), w.Home()+"-moved"), os.Symlink(filepath.Dir(root), w.Home()))
		},
	} {
		for use, do := range uses(t) {
			t.Run(name+", then "+use, func(t *testing.T) {
				w := open(t, Options{Root: root})
				must(t, replace(w))
				var lost *LostError
				if err := do(w); !errors.As(err, &lost) {
					t.Errorf("%v", err)
				}
				must(t, w.Close(t.Context(), false))
				same(t, "the shared tree", contents(t, root), before)
			})
		}
	}
}

// Lockkeeper does not run commands that an agent configured for git.
//
// shows: GP-5
func TestConfiguredCommandsDoNotRun(t *testing.T) {
	root := newRepository(t)
	write(t, root, "nested/file", "nested")
	git(t, filepath.Join(root, "nested"), "init", "-q")
	w := open(t, Options{Root: root})
	ran := filepath.Join(t.TempDir(), "ran")
	program := filepath.Join(t.TempDir(), "program")
	must(t, os.WriteFile(program, []byte("#!/bin/sh\necho \"$0 $*\" >> "+ran+"\ncat\n"), 0o755))
	sh(t, w, fmt.Sprintf(`
		for repository in . nested; do (cd $repository
			for key in core.fsmonitor filter.x.clean filter.x.smudge filter.x.process diff.external diff.x.textconv core.pager core.editor core.sshCommand \
				credential.helper gpg.program uploadpack.packObjectsHook alias.rev-parse alias.cat-file; do git config $key %[1]s; done
			git config core.hooksPath hooks; mkdir -p hooks
			for hook in post-checkout pre-commit post-index-change reference-transaction fsmonitor-watchman; do cp %[1]s hooks/$hook; done
			echo '* filter=x diff=x' > .gitattributes; echo '[include] path = /dev/zero' >> .git/config)
		done; echo mine > app/models/user.rb; echo mine > nested/file; rm app/run.sh`, program))
	write(t, root, "app/models/user.rb", "landed over, was committed\n") // so that TakeOut must read the original from git
	write(t, root, "new.rb", "newer\n")
	for name, use := range uses(t) {
		if err := use(w); name != "Open" && err != nil { // Open finds no such file
			t.Errorf("%s: %v", name, err)
		}
	}
	must(t, w.Close(t.Context(), true))
	left, err := Abandoned(t.Context(), filepath.Dir(w.Home()))
	if err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
	again, err := Adopt(w.Home(), nil)
	must(t, err)
	_, err = again.TakeOut(t.Context(), []string{"."})
	must(t, errors.Join(err, again.Close(t.Context(), false)))
	if isThere(ran) {
		t.Errorf("ran: %s", read(t, "/", ran))
	}
}

// Everything that an agent creates in its workspace is reported and can be taken out. The time
// is at most proportional to the size.
//
// shows: GP-5 SW-75
func TestMuchIsTakenOut(t *testing.T) {
	long := strings.Repeat("n", 255)
	for name, c := range map[string]struct {
		make func(t *testing.T, w *Workspace)
		want int
	}{
		"a deep tree":  {func(t *testing.T, w *Workspace) { dig(t, tree(t, w), 2000, "d", "file") }, 1},
		"longest path": {func(t *testing.T, w *Workspace) { dig(t, tree(t, w), 15, long, long[:maxPath-1-15*256]) }, 1},
		"many files": {func(t *testing.T, w *Workspace) {
			for i := range 5_000 {
				write(t, tree(t, w), fmt.Sprintf("many/%d/%d", i%100, i), "")
			}
		}, 5_000},
		"files without an end": {func(t *testing.T, w *Workspace) { sh(t, w, "truncate -s 4T sparse; truncate -s 4T a.rb") }, 2},
		"closed places": {func(t *testing.T, w *Workspace) {
			sh(t, w, "mkdir -p c/d; touch c/d/e; mkfifo c/p; find c dir a.rb -depth -exec chmod 0 {} +; chmod 0 .. .")
		}, 8},
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t, Options{Root: base(t)})
			before := contents(t, tree(t, w))
			c.make(t, w)
			found, err := w.Changes(t.Context())
			if err != nil || len(found) != c.want {
				t.Fatalf("%d changes, %v", len(found), err)
			}
			var paths []string
			for _, c := range found {
				paths = append(paths, c.Path)
			}
			taken, err := w.TakeOut(t.Context(), paths)
			if err != nil || len(taken) != len(found) {
				t.Errorf("%d are taken out, %v", len(taken), err)
			}
			wantChanges(t, w)
			after := contents(t, tree(t, w))
			after["."] = before["."] // not compared
			same(t, "what is left", after, before)
		})
	}
}

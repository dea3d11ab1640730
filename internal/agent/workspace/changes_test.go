package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"lockkeeper"
)

// base returns a small tree for agents to work on.
func base(t *testing.T) (root string) {
	t.Helper()
	root = filepath.Join(t.TempDir(), "shared")
	plant(t, root, map[string]string{
		"a.rb": "one\n", "b.rb": "two\n", "run.sh": "#!/bin/sh\n", "dir/x.rb": "x\n", "dir/y.rb": "y\n", "dir/sub/z.rb": "z\n",
		"empty/": "", "link": "->a.rb", "nest/empty/": "",
	})
	return root
}

// shows: GP-5
func TestKindsOfChange(t *testing.T) {
	root := base(t)
	for script, want := range map[string][]string{
		"true": nil,
		"echo three > a.rb; echo n > new.rb; mkdir -p deep/er; echo n > deep/er/new.rb; mkdir void": {
			"modified a.rb", "created deep/er/new.rb", "created new.rb", "created void"},
		"rm a.rb; rm -r dir; rmdir empty":                        {"deleted a.rb", "deleted dir/sub/z.rb", "deleted dir/x.rb", "deleted dir/y.rb", "deleted empty"},
		"chmod +x a.rb; chmod 700 dir; chmod 600 run.sh":         {"mode changed a.rb", "mode changed dir", "mode changed run.sh"},
		"chmod u+s a.rb":                                         {"mode changed a.rb"},
		"rm a.rb; ln -s b.rb a.rb":                               {"type changed a.rb"},
		"rm a.rb; mkdir a.rb":                                    {"type changed a.rb"},
		"rm a.rb; mkdir a.rb; echo x > a.rb/x":                   {"type changed a.rb", "created a.rb/x"},
		"rm -r dir; echo file > dir":                             {"type changed dir", "deleted dir/sub/z.rb", "deleted dir/x.rb", "deleted dir/y.rb"},
		"rm -r dir; ln -s empty dir":                             {"type changed dir", "deleted dir/sub/z.rb", "deleted dir/x.rb", "deleted dir/y.rb"},
		"rm a.rb; mkfifo a.rb; mkfifo pipe":                      {"type changed a.rb", "created pipe"},
		"rm link; ln -s b.rb link":                               {"modified link"},
		"rm link; ln -s a.rb link":                               nil,
		"rm link; echo one > link":                               {"type changed link"},
		"rmdir empty; touch empty":                               {"type changed empty"},
		"touch empty/x":                                          {"created empty/x"},
		"rm -r nest":                                             {"deleted nest/empty"},
		"mv dir moved":                                           {"deleted dir/sub/z.rb", "deleted dir/x.rb", "deleted dir/y.rb", "created moved/sub/z.rb", "created moved/x.rb", "created moved/y.rb"},
		"mv a.rb t; mv b.rb a.rb; mv t b.rb":                     {"modified a.rb", "modified b.rb"},
		"touch a.rb b.rb; echo one > a.rb; cp b.rb c; mv c b.rb": nil,
		"touch -r a.rb ref; printf 'ten\\n' > a.rb; touch -r ref a.rb; rm ref":      {"modified a.rb"},
		"touch -r a.rb ref; printf 'ten\\n' > t; touch -r ref t; mv t a.rb; rm ref": {"modified a.rb"},
		"truncate -s 0 a.rb":             {"modified a.rb"},
		"chmod 000 a.rb; chmod 644 a.rb": nil,
		"printf n > 'new\nline'; printf n > \"$(printf '\\377')\"; printf n > 'q\"uo\\te'": {"created new\nline", "created q\"uo\\te", "created \xff"},
		"rm -rf .git; mkdir -p .lockkeeper .git/x; touch .lockkeeper/x":                    nil,
		"rm -rf ./* ": {"deleted a.rb", "deleted b.rb", "deleted dir/sub/z.rb", "deleted dir/x.rb", "deleted dir/y.rb", "deleted empty", "deleted link",
			"deleted nest/empty", "deleted run.sh"},
	} {
		t.Run(script, func(t *testing.T) {
			w := open(t, Options{Root: root})
			sh(t, w, script)
			wantChanges(t, w, want...)
			wantChanges(t, w, want...) // a second call finds the same
		})
	}
}

func TestChangeTellsBothSides(t *testing.T) {
	root := base(t)
	w := open(t, Options{Root: root})
	sh(t, w, "echo longer > a.rb; chmod 755 a.rb; rm b.rb; ln -sf dir link; echo n > n; mkfifo p")
	found, err := w.Changes(t.Context())
	must(t, err)
	var got []string
	for _, c := range found {
		got = append(got, fmt.Sprintf("%s: %s -> %s, base %.20s, lands %t", c.Path, c.Was, c.Now, c.Base, c.CanLand()))
	}
	want := []string{
		"a.rb: file 0644 of 4 bytes -> file 0755 of 7 bytes, base file 0644 2c8b08da5c, lands true",
		"b.rb: file 0644 of 4 bytes -> nothing, base file 0644 27dd8ed44a, lands true",
		`link: link to "a.rb" -> link to "dir", base nothing, lands false`,
		"n: nothing -> file 0644 of 2 bytes, base nothing, lands true",
		"p: nothing -> prw-r--r--, base nothing, lands false",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	f, err := w.Open("a.rb")
	must(t, err)
	content, err := io.ReadAll(f)
	if err != nil || string(content) != "longer\n" {
		t.Errorf("%q, %v", content, err)
	}
	must(t, f.Close())
	for _, path := range []string{"p", "link", "link/x.rb", "dir", "none", "../tree/a.rb", "/etc/hosts", ".git/HEAD", "a.rb/x"} {
		if f, err := w.Open(path); err == nil {
			t.Errorf("%s was opened: %s", path, f.Name())
		}
	}
}

// Changes finds a write right after the workspace was made, however coarse the clock of the disk
// is.
func TestYoungCopiesAreRead(t *testing.T) {
	root := base(t)
	for range 20 * torture() {
		w := open(t, Options{Root: root})
		n := w.base.find("a.rb")
		if !n.Young { // the machine is slow
			continue
		}
		must(t, os.WriteFile(filepath.Join(tree(t, w), "a.rb"), []byte("ten\n"), 0o644))
		seen, err := statAt(w.tree, "a.rb")
		must(t, err)
		// Pretend that both writes had the same time.
		n.Changed, n.Modified = seen.changed, seen.modified
		wantChanges(t, w, "modified a.rb")
		must(t, w.Close(t.Context(), false))
	}
}

// An agent can put files of any kind into its workspace.
//
// shows: GP-5
func TestHostileWorkspaces(t *testing.T) {
	root := base(t)
	refused := func(t *testing.T, w *Workspace, reason string) {
		t.Helper()
		found, err := w.Changes(t.Context())
		var r *lockkeeper.RefusedError
		if !errors.As(err, &r) || !strings.Contains(r.Reason, reason) {
			t.Errorf("%d changes, %v", len(found), err)
		}
		must(t, w.Close(t.Context(), false))
		if _, err := os.Lstat(w.Home()); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("it is still there: %v", err)
		}
	}
	t.Run("too deep", func(t *testing.T) {
		w := open(t, Options{Root: root})
		dig(t, tree(t, w), 1000, "ten-bytes-", "file")
		refused(t, w, "longer than 4096 bytes")
	})
	t.Run("too many", func(t *testing.T) {
		w := open(t, Options{Root: root})
		w.maxCreated = 1000
		first := filepath.Join(tree(t, w), "first")
		must(t, os.WriteFile(first, nil, 0o600))
		for i := range w.maxCreated {
			must(t, syscall.Link(first, filepath.Join(tree(t, w), fmt.Sprint("more", i))))
		}
		refused(t, w, "more than 1000 new names")
	})
	t.Run("gone", func(t *testing.T) {
		onlyCopies(t, "nobody can remove the place of a mount")
		w := open(t, Options{Root: root})
		must(t, os.RemoveAll(tree(t, w)))
		var lost *LostError
		_, err := w.Changes(t.Context())
		if !errors.As(err, &lost) {
			t.Errorf("%v", err)
		}
		must(t, os.Mkdir(tree(t, w), 0o700))
		if _, err = w.TakeOut(t.Context(), []string{"."}); !errors.As(err, &lost) {
			t.Errorf("%v", err)
		}
		must(t, os.RemoveAll(w.Home()))
		if _, _, err = w.Refresh(t.Context(), []string{"."}); !errors.As(err, &lost) {
			t.Errorf("%v", err)
		}
		must(t, w.Close(t.Context(), false))
		if _, err = w.Changes(t.Context()); !errors.Is(err, os.ErrClosed) {
			t.Errorf("%v", err)
		}
	})
	t.Run("replaced by a link", func(t *testing.T) {
		onlyCopies(t, "nobody can replace the place of a mount")
		w := open(t, Options{Root: root})
		must(t, os.Rename(tree(t, w), tree(t, w)+"2"))
		must(t, os.Symlink(root, tree(t, w)))
		var lost *LostError
		if _, err := w.Changes(t.Context()); !errors.As(err, &lost) {
			t.Errorf("%v", err)
		}
		before := contents(t, root)
		must(t, w.Close(t.Context(), false))
		same(t, "the shared tree", contents(t, root), before)
	})
	t.Run("stopped", func(t *testing.T) {
		w := open(t, Options{Root: root})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := w.Changes(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}

// dig creates nested directories, deeper than the longest path.
func dig(t *testing.T, dir string, levels int, name, file string) {
	t.Helper()
	fd, err := openAt(unix.AT_FDCWD, dir, syscall.O_RDONLY|syscall.O_DIRECTORY, 0)
	must(t, err)
	for range levels {
		must(t, unix.Mkdirat(fd, name, 0o755))
		next, err := openAt(fd, name, syscall.O_RDONLY|syscall.O_DIRECTORY, 0)
		must(t, err)
		must(t, syscall.Close(fd))
		fd = next
	}
	out, err := openAt(fd, file, syscall.O_WRONLY|syscall.O_CREAT, 0o600)
	must(t, err)
	must(t, errors.Join(syscall.Close(out), syscall.Close(fd)))
}

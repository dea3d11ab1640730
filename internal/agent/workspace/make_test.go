package workspace

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/durable"
)

// shows: GP-5
func TestEverythingIsCopied(t *testing.T) {
	root := newRepository(t)
	long := strings.Repeat("ü", 127) + "x" // 255 bytes
	plant(t, root, map[string]string{
		"empty/": "", "deep/" + strings.Repeat("d/", 100) + "end": "deep", "out": "->/etc/hosts", "up": "->../../elsewhere", "in": "->app/models",
		"dangling": "->nowhere", "line\nbreak \"quoted\" \\": "odd", "\xff\xfe": "bytes", " ": "space", long: "long", "big": strings.Repeat("0123456789", 100_000),
		durable.TempPrefix + "x": "a half-written file", "sub/.git/config": "no repository", "sub/.lockkeeper/x": "an ordinary name",
	})
	for path, mode := range map[string]os.FileMode{"app/models/user.rb": 0o600, "app/run.sh": 0o755, "new.rb": 0o444, "empty": 0o555, "deep": 0o700} {
		must(t, os.Chmod(filepath.Join(root, path), mode))
	}
	old := time.Date(2001, 2, 3, 4, 5, 6, 789, time.UTC)
	must(t, os.Chtimes(filepath.Join(root, "new.rb"), old, old))
	before := contents(t, root)
	w := open(t, Options{Root: root})
	without := []string{gitName, stateDir, durable.TempPrefix + "x"}
	same(t, "the copy", contents(t, tree(t, w), without...), contents(t, root, without...))
	same(t, "the shared tree", contents(t, root), before)
	wantChanges(t, w)
	info, err := os.Stat(filepath.Join(tree(t, w), "new.rb"))
	must(t, err)
	if !info.ModTime().Equal(old) {
		t.Errorf("copied with the time %s, not %s", info.ModTime(), old)
	}
	var links []string
	for _, o := range w.Oddities() {
		links = append(links, o.Path+": "+o.What)
	}
	if want := []string{"out: a link that leads out of the codebase, to /etc/hosts", "up: a link that leads out of the codebase, to ../../elsewhere"}; !slices.Equal(links, want) {
		t.Errorf("oddities %q, want %q", links, want)
	}
	for _, dir := range []string{w.Home(), filepath.Dir(w.Home())} {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", dir, info.Mode(), err)
		}
	}
	for _, path := range []string{stateDir, durable.TempPrefix + "x"} {
		if _, err := os.Lstat(filepath.Join(tree(t, w), path)); err == nil {
			t.Errorf("%s was copied", path)
		}
	}
}

func TestSpecialFilesAreLeftOut(t *testing.T) {
	root := t.TempDir()
	write(t, root, "a", "a")
	must(t, syscall.Mkfifo(filepath.Join(root, "pipe"), 0o600))
	socket, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(root, "socket"), Net: "unix"})
	must(t, err)
	defer socket.Close()
	w := open(t, Options{Root: root})
	same(t, "the copy", contents(t, tree(t, w)), map[string]string{".": "drwxr-xr-x ", "a": "-rw-r--r-- a"})
	var kinds []string
	for _, o := range w.Oddities() {
		kinds = append(kinds, o.Path+": "+o.What)
	}
	if want := []string{"pipe: not copied: neither a file, a directory nor a link", "socket: not copied: neither a file, a directory nor a link"}; !slices.Equal(kinds, want) {
		t.Errorf("oddities %q, want %q", kinds, want)
	}
	wantChanges(t, w)
}

// A sparse file is copied as a sparse file.
func TestHolesStayHoles(t *testing.T) {
	root := t.TempDir()
	f, err := os.Create(filepath.Join(root, "holes"))
	must(t, err)
	_, err = f.WriteAt([]byte("in the middle"), 64<<20)
	must(t, err)
	must(t, f.Truncate(128<<20))
	must(t, f.Close())
	w := open(t, Options{Root: root})
	var st syscall.Stat_t
	must(t, syscall.Stat(filepath.Join(tree(t, w), "holes"), &st))
	if st.Size != 128<<20 || st.Blocks > 2048 {
		t.Errorf("the copy has %d bytes in %d blocks", st.Size, st.Blocks)
	}
	wantChanges(t, w)
	same(t, "the copy", contents(t, tree(t, w)), contents(t, root))
}

// shows: GP-5
func TestLinkedOnlyWhenSealed(t *testing.T) {
	root := newRepository(t)
	plant(t, root, map[string]string{"node_modules/a/index.js": "a", "vendor/bundle/b.rb": "b", "vendor/own.rb": "c"})
	git(t, root, "config", "core.excludesFile", "/dev/null")
	write(t, root, ".gitignore", "*.log\nbuild/\nnode_modules/\nvendor/\n.lockkeeper/\n")
	for _, sealed := range []bool{false, true} {
		w := open(t, Options{Root: root, Linked: []string{"node_modules/", "vendor/bundle", "absent"}, Sealed: sealed})
		for _, folder := range []string{"node_modules", "vendor/bundle"} {
			link, err := os.Readlink(filepath.Join(tree(t, w), folder))
			if sealed && link != filepath.Join(root, folder) || !sealed && err == nil {
				t.Errorf("sealed %t: %s is a link to %q", sealed, folder, link)
			}
		}
		if read(t, tree(t, w), "vendor/bundle/b.rb") != "b" || read(t, tree(t, w), "vendor/own.rb") != "c" {
			t.Error("the folders are not as they were")
		}
		if sealed {
			if out := git(t, tree(t, w), "status", "--porcelain", "node_modules"); out != "" {
				t.Errorf("git status tells of a linked folder: %s", out)
			}
			write(t, root, "node_modules/a/index.js", "newer")
			moved, conflicts, err := w.Refresh(t.Context(), []string{"node_modules/a/index.js", "node_modules", "."})
			if err != nil || len(moved)+len(conflicts) > 0 {
				t.Errorf("%v, %v, %v", moved, conflicts, err)
			}
		}
		wantChanges(t, w)
	}
}

func TestDirectoryOfWorkspaces(t *testing.T) {
	top := t.TempDir()
	root := filepath.Join(top, "shared")
	plant(t, top, map[string]string{"shared/a": "a", "link": "->shared", "file": "", "other/": ""})
	for _, dir := range []string{"shared", "shared/inside", "shared/a/b/c", "link/inside", "file", "file/x", "other/with:colon"} {
		w, err := Make(t.Context(), Options{Root: root, Dir: filepath.Join(top, dir)})
		if lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
			t.Errorf("%s: %v, %v", dir, w, err)
		}
	}
	same(t, "the shared tree", contents(t, root), map[string]string{".": "drwxr-xr-x ", "a": "-rw-r--r-- a"})
	for _, root := range []string{"", filepath.Join(top, "file"), filepath.Join(top, "none")} {
		if w, err := Make(t.Context(), Options{Root: root, Dir: filepath.Join(top, "other")}); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
			t.Errorf("root %q: %v, %v", root, w, err)
		}
	}
	w := open(t, Options{Root: filepath.Join(top, "link"), Dir: filepath.Join(top, "made", "here")})
	if w.Root() != root || read(t, tree(t, w), "a") != "a" {
		t.Errorf("root %s", w.Root())
	}
}

func TestMakingCanBeStopped(t *testing.T) {
	root, dir := t.TempDir(), t.TempDir()
	for i := range 2000 {
		write(t, root, filepath.Join("d"+string(rune('a'+i%20)), "f"+string(rune('a'+i/20%26))+string(rune('a'+i%26))), "x")
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	_, err := Make(ctx, Options{Root: root, Dir: dir, Landed: func(context.Context, uint64) ([]string, uint64, error) {
		cancel(enough) // before anything is copied
		return nil, 7, nil
	}})
	if !errors.Is(err, enough) {
		t.Errorf("made after it was stopped: %v", err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

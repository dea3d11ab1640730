package tree

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"lockkeeper"
)

const (
	read  = lockkeeper.Read
	write = lockkeeper.Write
)

// plant creates a tree of files. A name with a trailing slash is a directory,
// "name -> target" a symlink, anything else a file.
func plant(t testing.TB, names ...string) *Root {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		name, link, isLink := strings.Cut(name, " -> ")
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		switch {
		case err != nil:
		case isLink:
			err = os.Symlink(strings.ReplaceAll(link, "$ROOT", dir), path)
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(path, 0o700)
		default:
			err = os.WriteFile(path, nil, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return open(t, dir)
}

func open(t testing.TB, dir string) *Root {
	t.Helper()
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func wantTarget(t *testing.T, r *Root, base, spelling, path string, kind lockkeeper.Kind) {
	t.Helper()
	got, err := r.Resolve(base, spelling, write)
	want := lockkeeper.Lock{Target: lockkeeper.Target{Path: path, Kind: kind}, Mode: write}
	if err != nil || got != want {
		t.Errorf("%q from %q: got %v %v, %v; want %v %v", spelling, base, got.Kind, got, err, kind, path)
	}
}

func wantRefused(t *testing.T, r *Root, spelling string, mode lockkeeper.Mode, reason string) {
	t.Helper()
	got, err := r.Resolve("", spelling, mode)
	var input *lockkeeper.InputError
	switch {
	case !errors.As(err, &input):
		t.Errorf("%.40q: got %v, %v; want an InputError about %q", spelling, got, err, reason)
	case !strings.Contains(input.Reason, reason) || input.Next == "" || input.Value != spelling:
		t.Errorf("%.40q: got %#v; want the reason %q and a next step", spelling, input, reason)
	}
}

// shows: GP-2
func TestOneFileHasOneName(t *testing.T) {
	r := plant(t, "a/b/c.rb", "in -> a/b", "up/one -> ../a", "abs -> $ROOT/a/b/c.rb", "chain -> in/c.rb",
		"zig -> a/../in/./c.rb", "top -> .", "dirslash -> a/b/")
	outside := t.TempDir()
	if err := os.Symlink(r.Dir(), filepath.Join(outside, "root")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(r.Dir(), "a"), filepath.Join(outside, "sub")); err != nil {
		t.Fatal(err)
	}
	for _, spelling := range []string{
		"a/b/c.rb", "./a/b/c.rb", "a//b/c.rb", "a/./b/c.rb", ".//a/.//b/./c.rb", "in/c.rb", "up/one/b/c.rb", "abs",
		"chain", "zig", "top/a/b/c.rb", "top/top/top/zig", "dirslash/c.rb",
		r.Dir() + "/a/b/c.rb", "/" + r.Dir() + "//in/c.rb", outside + "/root/a/b/c.rb", outside + "/sub/b/c.rb",
	} {
		wantTarget(t, r, "", spelling, "a/b/c.rb", lockkeeper.File)
	}
	for _, spelling := range []string{"a/b", "a/b/", "a/b/.", "a/b//", "in", "in/", "dirslash", "dirslash/", r.Dir() + "/in"} {
		wantTarget(t, r, "", spelling, "a/b", lockkeeper.Dir)
	}
	for _, spelling := range []string{".", "./", "./.", "top", "top/", r.Dir(), r.Dir() + "/", outside + "/root"} {
		wantTarget(t, r, "", spelling, lockkeeper.Root, lockkeeper.Dir)
	}
	for base, spelling := range map[string]string{
		r.Dir(): "a/b/c.rb", r.Dir() + "/a": "b/c.rb", r.Dir() + "/in": "./c.rb",
		outside + "/sub": "b/c.rb", outside + "/root/a/b": "c.rb",
		outside: "a/b/c.rb", "/no/such/place": "a/b/c.rb", r.Dir() + "/up/none": r.Dir() + "/abs",
	} {
		wantTarget(t, r, base, spelling, "a/b/c.rb", lockkeeper.File)
	}
	if _, err := r.Resolve("a", "b", read); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
		t.Errorf("a relative base: %v", err)
	}
	if _, err := r.Resolve("", "a", 0); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
		t.Errorf("no mode: %v", err)
	}
}

// Only links and ".." after a name in them count as attempts, so that links with many
// ".." are not a loop.
func TestManyLinksThatClimb(t *testing.T) {
	names := []string{"end.rb"}
	for i := range byte(20) {
		next := string('a' + i + 1)
		if i == 19 {
			next = "end.rb"
		} else {
			next += "/1/2/3/4/link"
		}
		names = append(names, string('a'+i)+"/1/2/3/4/link -> ../../../../../"+next)
	}
	wantTarget(t, plant(t, names...), "", "a/1/2/3/4/link", "end.rb", lockkeeper.File)
}

// shows: GP-3 SW-13
func TestKinds(t *testing.T) {
	r := plant(t, "app/models/user.rb", "dangling -> app/later.rb", "danglingdir -> app/later/", "deep -> x/y/z")
	for spelling, path := range map[string]string{
		"app/models/user.rb": "app/models/user.rb", "app/new.rb": "app/new.rb", "new": "new",
		"no/such/dir/x.rb": "no/such/dir/x.rb", "dangling": "app/later.rb", "deep": "x/y/z", "deep/w": "x/y/z/w",
	} {
		wantTarget(t, r, "", spelling, path, lockkeeper.File)
	}
	for spelling, path := range map[string]string{
		"app": "app", "app/models/": "app/models", "app/new/": "app/new", "no/such/": "no/such", "new/.": "new", "danglingdir": "app/later",
	} {
		wantTarget(t, r, "", spelling, path, lockkeeper.Dir)
	}
}

// shows: GP-2
func TestRefused(t *testing.T) {
	r := plant(t, "a.rb", "d/x.rb", "out -> ../elsewhere", "abs -> /etc/hosts", "chain -> out", "nowhere -> /no/such/file",
		"d/up -> ../../x", "loop -> loop", "ping -> pong", "pong -> ping", "long -> d/../../x", "gone -> none/../a.rb",
		"file -> a.rb/", "bad -> \xff", "beside -> $ROOT-beside/x")
	if err := os.Mkdir(r.Dir()+"-beside", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(r.Dir(), "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	sock, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(r.Dir(), "sock"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer sock.Close()
	for spelling, reason := range map[string]string{
		"": "empty", "a\x00b": "NUL", strings.Repeat("a/", 2048) + "a": "4097 bytes", "\xffa": "UTF-8",
		"..": "..", "d/../a.rb": "..", "d/..": "..", "../" + filepath.Base(r.Dir()) + "/a.rb": "..",
		"/etc/hosts": "outside", "/": "outside", r.Dir() + "-beside/x": "outside", filepath.Dir(r.Dir()): "outside",
		"a.rb/x": "not a directory", "a.rb/x/y": "not a directory", "file/x": "not a directory", "fifo/x": "not a directory",
		"a.rb/": "trailing slash", "a.rb/.": "trailing slash", "file": "trailing slash",
		"fifo": "neither", "sock": "neither",
		"out": "leaves the root", "out/x": "leaves the root", "abs": "leaves the root", "chain": "leaves the root",
		"nowhere": "leaves the root", "nowhere/x": "leaves the root", "d/up": "leaves the root", "long": "leaves the root",
		"beside": "leaves the root", "gone": "does not exist",
		"loop": "loop", "loop/x": "loop", "ping": "loop",
		strings.Repeat("n", 256): "too long", "d/" + strings.Repeat("n", 256) + "/x": "too long",
	} {
		wantRefused(t, r, spelling, read, reason)
		wantRefused(t, r, spelling, write, reason)
	}
	for _, spelling := range []string{"bad", "\U0010FFFFx"} {
		if _, err := r.Resolve("", spelling, read); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
			t.Errorf("%q: %v", spelling, err)
		}
	}
}

func TestHardLinks(t *testing.T) {
	r := plant(t, "a.rb", "to -> b.rb")
	if err := os.Link(filepath.Join(r.Dir(), "a.rb"), filepath.Join(r.Dir(), "b.rb")); err != nil {
		t.Fatal(err)
	}
	for _, spelling := range []string{"a.rb", "b.rb", "to"} {
		wantRefused(t, r, spelling, write, "2 hard links")
		wantRefused(t, r, spelling, lockkeeper.Upgradeable, "2 hard links")
		if _, err := r.Resolve("", spelling, read); err != nil {
			t.Errorf("reading %s: %v", spelling, err)
		}
	}
}

func TestReserved(t *testing.T) {
	for _, git := range []string{".git/config", ".git", ".git -> /etc", ".git -> loop"} {
		r := plant(t, git, ".lockkeeper/state.db", "to -> .git", "into -> .git/config", "state -> .lockkeeper/x",
			"around -> .git/../a", "sub/.git/config", "sub/.lockkeeper/x")
		for _, spelling := range []string{".git", ".git/", "./.git", "to", "to/", r.Dir() + "/.git"} {
			wantTarget(t, r, "", spelling, lockkeeper.GitTarget, lockkeeper.File)
		}
		for _, spelling := range []string{".git/config", ".git/x/y", "to/HEAD", "into", "around", r.Dir() + "/.git/HEAD"} {
			wantRefused(t, r, spelling, write, "part of .git")
		}
		for _, spelling := range []string{".lockkeeper", ".lockkeeper/", ".lockkeeper/state.db", "state"} {
			wantRefused(t, r, spelling, read, "belongs to Lockkeeper")
		}
		wantTarget(t, r, "", "sub/.git/config", "sub/.git/config", lockkeeper.File)
		wantTarget(t, r, "", "sub/.git", "sub/.git", lockkeeper.Dir)
		wantTarget(t, r, "", "sub/.lockkeeper", "sub/.lockkeeper", lockkeeper.Dir)
		wantTarget(t, r, "", ".github", ".github", lockkeeper.File)
		wantTarget(t, r, "", ".GIT", ".GIT", lockkeeper.File)
	}
	r := plant(t)
	wantTarget(t, r, "", ".git", lockkeeper.GitTarget, lockkeeper.File)
}

func TestOpen(t *testing.T) {
	r := plant(t, "real/a.rb", "link -> real", "file")
	inner := open(t, filepath.Join(r.Dir(), "link"))
	if want := filepath.Join(r.Dir(), "real"); inner.Dir() != want {
		t.Errorf("Dir() = %q, want %q", inner.Dir(), want)
	}
	for _, dir := range []string{"file", "none", "file/x"} {
		if r, err := Open(filepath.Join(r.Dir(), dir)); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
			t.Errorf("%s: %v, %v", dir, r, err)
		}
	}
	// The root stays the same directory when its path is replaced.
	if err := os.Rename(inner.Dir(), inner.Dir()+"2"); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, inner, "a.rb/", read, "trailing slash") // proves that it is found
	wantTarget(t, inner, "", filepath.Join(r.Dir(), "real2/a.rb"), "a.rb", lockkeeper.File)
	if err := inner.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := inner.Resolve("", "a.rb", read); !errors.Is(err, os.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

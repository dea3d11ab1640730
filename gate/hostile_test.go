package gate_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/internal/machine/machinetest"
	"lockkeeper/lock"
	"lockkeeper/store"
	"lockkeeper/store/memstore"
	"lockkeeper/store/storetest"
)

// scan describes every entry of a directory: kind, permissions, content and link target. It
// omits directories named skip.
func scan(t testing.TB, dir string, skip ...string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		for _, name := range skip {
			if rel == name {
				return fs.SkipDir
			}
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := ""
		switch {
		case info.Mode().IsRegular():
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text = string(content)
		case info.Mode()&fs.ModeSymlink != 0:
			if text, err = os.Readlink(path); err != nil {
				return err
			}
		}
		out[rel] = fmt.Sprintf("%s %s", info.Mode(), text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// differences returns the paths at which two scans differ.
func differences(before, after map[string]string) (list []string) {
	for path, was := range before {
		if now, ok := after[path]; !ok {
			list = append(list, path+" is gone")
		} else if now != was {
			list = append(list, fmt.Sprintf("%s was %.60q, is %.60q", path, was, now))
		}
	}
	for path, now := range after {
		if _, ok := before[path]; !ok {
			list = append(list, fmt.Sprintf("%s is new: %.60q", path, now))
		}
	}
	return list
}

// harmless checks that act fails with these words in its error, leaves the tree unchanged, and
// leaves no stage.
func (w *world) harmless(what string, act func() error, words ...string) {
	w.t.Helper()
	before := scan(w.t, w.dir, ".lockkeeper")
	err := act()
	if err == nil {
		w.t.Errorf("%s: accepted", what)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			w.t.Errorf("%s: error %q does not say %q", what, err, word)
		}
	}
	for _, d := range differences(before, scan(w.t, w.dir, ".lockkeeper")) {
		w.t.Errorf("%s: %s", what, d)
	}
	w.noStages()
}

// releases checks that a grant can be released and has no open landing.
func (w *world) releases(g *lock.Grant) {
	w.t.Helper()
	if err := g.Release(w.t.Context()); err != nil {
		w.t.Errorf("release: %v", err)
	}
	if e, err := w.locks.Request(w.t.Context(), g.ID); err != nil || e != nil {
		w.t.Errorf("the grant is still there: %v, %v", e, err)
	}
	var open []*lockkeeper.Landing
	if err := w.store.View(w.t.Context(), func(r store.Reader) (err error) {
		open, err = r.Landings(store.LandingQuery{Open: true})
		return err
	}); err != nil || len(open) > 0 {
		w.t.Errorf("%d landings are open, %v", len(open), err)
	}
}

func (w *world) in(path string) string { return filepath.Join(w.dir, path) }

// must fails the test if its preparations return an error.
func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// A write to a path that is not a regular file inside the root is refused. The tree does not
// change and the grant can be released.
//
// shows: SW-35 SW-38 PL-55 GP-2
func TestHostilePaths(t *testing.T) {
	outside := t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("theirs"), 0o644))
	w := newWorld(t, map[string]string{"test/a": "a", "test/twin": "t", "lib/x": "x", "test/sub/f": "f", "test/ro": "r", "test/closed/f": "c", "test/caf\u00e9": "nfc"}, gate.Options{})
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: w.in("test/socket"), Net: "unix"})
	must(t, err)
	defer listener.Close()
	must(t,
		os.Symlink(outside, w.in("test/out")), os.Symlink(filepath.Join(outside, "secret"), w.in("test/secret")),
		os.Symlink(filepath.Join(outside, "new"), w.in("test/dangling")), os.Symlink("../lib/x", w.in("test/lib")),
		os.Symlink("loop", w.in("test/loop")), os.Symlink("../../../etc/passwd", w.in("test/up")),
		os.Symlink("../.lockkeeper/rescue/x", w.in("test/own")),
		os.Link(w.in("test/twin"), w.in("test/twin2")), unix.Mkfifo(w.in("test/fifo"), 0o644),
		os.Chmod(w.in("test/ro"), 0o444), os.Chmod(w.in("test/closed"), 0o555))
	t.Cleanup(func() { must(t, os.Chmod(w.in("test/closed"), 0o755)) }) // so that an unprivileged user can remove it
	device := os.Geteuid() == 0 && unix.Mknod(w.in("test/null"), unix.S_IFCHR|0o666, 1<<8|3) == nil
	beyond := scan(t, outside)
	cases := []struct{ path, word string }{
		{"test/out/secret", "leaves the root"}, {"test/out/new", "leaves the root"}, {"test/secret", "leaves the root"},
		{"test/dangling", "leaves the root"}, {"test/lib", "allowlist"}, {"test/loop", "symlinks"}, {"test/up", "symlink"},
		{"test/own", "Lockkeeper"}, {"test/twin", "hard links"}, {"test/twin2", "hard links"},
		{"test/a/b", "test/a"}, {"test/a/b/c", "test/a"}, {"test/../lib/x", ".."}, {"../x", ".."}, {"test/..", ".."},
		{"/etc/passwd", "outside the root"}, {filepath.Join(outside, "secret"), "outside the root"},
		{"test/fifo", "neither a file nor a directory"}, {"test/socket", "neither a file nor a directory"},
		{"test/sub", "a directory"}, {"test/sub/", "a directory"}, {"test/a/", "trailing slash"}, {"test/new/", "a directory"}, {".", "a directory"},
		{"test/ro", "read-only"}, {"test/closed/f", "read-only"}, {"test/closed/new", "read-only"}, {"test/closed/deep/new", "read-only"},
		{"test/cafe\u0301", "does not hold a lock"}, {"test/\xff", "UTF-8"}, {"test/a\x00b", "NUL"}, {"", "empty"},
		{"test/" + strings.Repeat("n", 300), "too long"}, {strings.Repeat("test/", 1000), "limit"},
		{"testing/x", "allowlist"}, {"TEST/a", "allowlist"}, {".git", ".git"}, {".git/config", ".git"}, {"test/.GIT/config", "GIT"}, {".lockkeeper/x", "Lockkeeper"},
	}
	if device {
		cases = append(cases, struct{ path, word string }{"test/null", "neither a file nor a directory"})
	}
	var held []string
	for _, c := range cases {
		target := lockkeeper.Target{Path: c.path, Kind: lockkeeper.File}
		if target.Validate() == nil && c.word != "does not hold a lock" {
			held = append(held, c.path) // held, so that the coverage check does not refuse it
		}
	}
	g := w.hold("otter", append(held, "test/caf\u00e9", "lib/x")...)
	for _, c := range cases {
		w.harmless(fmt.Sprintf("write %.60q", c.path), func() error {
			_, err := w.gate.Write(t.Context(), &g.Grant, c.path, []byte("forced"))
			return err
		}, c.word)
		if c.path != "test/closed/deep/new" { // the path does not exist
			w.harmless(fmt.Sprintf("delete %.60q", c.path), func() error {
				_, err := w.gate.Commit(t.Context(), &g.Grant, []gate.Change{gate.Delete(c.path)})
				return err
			}, c.word)
		}
		if errs := w.gate.Check(t.Context(), &g.Grant, c.path); errs[0] == nil && c.word != "read-only" {
			t.Errorf("check %.60q: fine", c.path)
		}
	}
	w.harmless("no change", func() error { _, err := w.gate.Commit(t.Context(), &g.Grant, nil); return err }, "has 1 to")
	w.harmless("one file twice", func() error {
		_, err := w.gate.Commit(t.Context(), &g.Grant, []gate.Change{gate.Put("test/caf\u00e9", nil), gate.Put("./test//caf\u00e9", nil)})
		return err
	}, "twice")
	w.harmless("mode of nothing", func() error {
		_, err := w.gate.Commit(t.Context(), &g.Grant, []gate.Change{chmod("test/dangling2", 0o600)})
		return err
	})
	w.releases(g)
	if d := differences(beyond, scan(t, outside)); len(d) > 0 {
		t.Errorf("outside of the root: %v", d)
	}
}

// A link that stays inside the root stands for its target, and only the target changes.
//
// shows: SW-37
func TestLinksInside(t *testing.T) {
	w := newWorld(t, map[string]string{"test/real/a": "a"}, gate.Options{})
	must(t, os.Symlink("real", w.in("test/dir")), os.Symlink("real/a", w.in("test/file")))
	g := w.hold("otter", "test/real/a", "test/real/b", "test/real/new/deep")
	w.commit(g, gate.Put("test/file", []byte("1")))
	w.commit(g, gate.Put("test/dir/b", []byte("2")), gate.Put("test/dir/new/deep", []byte("3")))
	w.want(map[string]string{"test/real/a": "1", "test/real/b": "2", "test/real/new/deep": "3"})
	for _, link := range []string{"test/dir", "test/file"} {
		if info, err := os.Lstat(w.in(link)); err != nil || info.Mode()&fs.ModeSymlink == 0 {
			t.Errorf("%s is no link any more: %v", link, err)
		}
	}
	w.harmless("a file that is not locked", func() error { _, err := w.gate.Write(t.Context(), &g.Grant, "test/dir/c", nil); return err }, "coverage")
	w.harmless("both names at once", func() error {
		_, err := w.gate.Commit(t.Context(), &g.Grant, []gate.Change{gate.Put("test/file", nil), gate.Put("test/real/a", nil)})
		return err
	}, "twice")
	w.releases(g)
}

// Missing directories are created inside the allowlist only.
func TestMissingParents(t *testing.T) {
	w := newWorld(t, nil, gate.Options{Allowed: []string{"app/models"}})
	g := w.hold("otter", "app/models/x/y.rb", "app/views/x/y.rb")
	w.harmless("outside", func() error { _, err := w.gate.Write(t.Context(), &g.Grant, "app/views/x/y.rb", nil); return err }, "allowlist")
	w.commit(g, gate.Put("app/models/x/y.rb", []byte("1")))
	w.want(map[string]string{"app/models/x/y.rb": "1"})
	w.releases(g)
}

// A commit under an ended grant is refused, however the grant ended.
//
// shows: SW-36 CF-11 GP-4
func TestGrantsThatEnded(t *testing.T) {
	clock := storetest.NewClock()
	w := &world{t: t, dir: t.TempDir(), store: memstore.New(space, memstore.Options{Now: clock.Now})}
	w.plant(map[string]string{"test/a": "old"})
	must(t, os.Mkdir(w.in(".lockkeeper"), 0o700))
	w.open(gate.Options{})
	write := func(g *lock.Grant) func() error {
		return func() error {
			_, err := w.gate.Write(t.Context(), &g.Grant, "test/a", []byte("late"))
			return err
		}
	}
	expired := w.hold("late", "test/a")
	clock.Advance(31 * time.Minute)
	w.harmless("expired", write(expired), "(grant)", "test/a")
	thief := w.hold("thief", "test/a")
	w.harmless("stolen", write(expired), "(grant)", "thief")
	w.releases(thief)
	w.harmless("released", write(thief), "(grant)", "test/a")

	// A claim that only a person may end stays, but nothing is written under it once it has expired.
	claim, err := w.locks.TryAcquire(t.Context(), lockkeeper.Request{Holder: "author", Policy: "author",
		Locks: []lockkeeper.Lock{{Target: lockkeeper.Target{Path: "test/a", Kind: lockkeeper.File}, Mode: lockkeeper.Write}}})
	must(t, err)
	clock.Advance(16 * time.Minute)
	w.harmless("an expired claim", write(claim), "(grant)", "its lease expired")
	w.releases(claim)

	revoked := w.hold("revoked", "test/a")
	must(t, w.locks.ForceRelease(t.Context(), revoked.ID, lockkeeper.Actor{Name: "ann", Kind: lockkeeper.ActorPerson}, "needed"))
	w.harmless("taken away by a person", write(revoked), "(grant)", "test/a")

	elsewhere := newWorld(t, nil, gate.Options{})
	foreign := elsewhere.hold("foreigner", "test/a")
	w.harmless("of another space", write(foreign), "(grant)")
	w.want(map[string]string{"test/a": "old"})
	kept, err := w.gate.Rescue().List(t.Context())
	if err != nil || len(kept) < 4 {
		t.Errorf("%d pieces on the shelf, %v; what was refused should be kept", len(kept), err)
	}
}

// Names that a case-folding disk treats as one file are one file to the gate, however they are
// spelled.
//
// shows: GP-2
func TestFoldingDisk(t *testing.T) {
	machinetest.EachFoldingDisk(t, func(t *testing.T, dir string) {
		w := &world{t: t, dir: dir, store: memstore.New(space, memstore.Options{})}
		must(t, os.Mkdir(w.in(".lockkeeper"), 0o700))
		machinetest.Fold(t, w.in("test"))
		w.plant(map[string]string{"test/user.rb": "old"})
		w.open(gate.Options{})
		g := w.hold("otter", "test/user.rb")
		w.commit(g, gate.Put("test/User.RB", []byte("new")))
		w.want(map[string]string{"test/user.rb": "new"})
		w.harmless("two spellings of one file", func() error {
			_, err := w.gate.Commit(t.Context(), &g.Grant, []gate.Change{gate.Put("test/USER.rb", nil), gate.Put("test/user.rb", nil)})
			return err
		}, "twice")
		w.releases(g)
	})
}

// A mount below the root is another disk. A rename cannot reach it, and the gate does not copy
// there instead.
//
// shows: DL-48
func TestAnotherDevice(t *testing.T) {
	w := newWorld(t, map[string]string{"test/a": "a"}, gate.Options{})
	must(t, os.Mkdir(w.in("test/disk"), 0o755))
	machinetest.Mount(t, "tmpfs", w.in("test/disk"), "tmpfs", 0, "size=64k")
	g := w.hold("otter", "test/a", "test/disk/x", "test/disk/deep/x")
	for _, path := range []string{"test/disk/x", "test/disk/deep/x"} {
		w.harmless(path, func() error {
			_, err := w.gate.Commit(t.Context(), &g.Grant, []gate.Change{gate.Put("test/a", []byte("2")), gate.Put(path, nil)})
			return err
		}, "another device or mount")
	}
	w.releases(g)
}

// shows: GP-4
func TestFullDisk(t *testing.T) {
	w := &world{t: t, dir: t.TempDir(), store: memstore.New(space, memstore.Options{})}
	machinetest.Mount(t, "tmpfs", w.dir, "tmpfs", 0, "size=256k")
	must(t, os.Mkdir(w.in(".lockkeeper"), 0o700))
	files := map[string]string{"test/a": "a", "test/b": "b"}
	w.plant(files)
	w.open(gate.Options{})
	g := w.hold("otter", "test/a", "test/b", "test/new/c")
	big := []byte(strings.Repeat("x", 1<<20))
	w.harmless("one file", func() error { _, err := w.gate.Write(t.Context(), &g.Grant, "test/a", big); return err }, "no space left", "nothing in the tree was changed",
		"the new content of test/a was not kept")
	w.harmless("several", func() error {
		_, err := w.gate.Commit(t.Context(), &g.Grant, []gate.Change{gate.Put("test/a", []byte("2")), gate.Delete("test/b"), gate.Put("test/new/c", big)})
		var lost *gate.NotKeptError
		if !errors.As(err, &lost) || !slices.Equal(lost.Paths, []string{"test/new/c"}) {
			t.Errorf("what was not kept is not told: %v", err)
		}
		return err
	}, "no space left", "rescue show")
	if kept := w.onShelf(); len(kept) != 1 || !slices.Equal(kept["test/a"], []string{"2"}) {
		t.Errorf("on the shelf: %q", kept)
	}
	w.commit(g, gate.Put("test/a", []byte("small")))
	want := maps.Clone(files)
	want["test/a"] = "small"
	w.want(want)
	w.releases(g)
}

// If the root is replaced, the gate keeps using the directory that it opened.
func TestRootMovedAway(t *testing.T) {
	top := t.TempDir()
	w := &world{t: t, dir: filepath.Join(top, "root"), store: memstore.New(space, memstore.Options{})}
	w.plant(map[string]string{"test/a": "a", ".lockkeeper/x": ""})
	w.open(gate.Options{})
	g := w.hold("otter", "test/a")
	must(t, os.Rename(w.dir, filepath.Join(top, "moved")), os.MkdirAll(w.in("test"), 0o755), os.WriteFile(w.in("test/a"), []byte("decoy"), 0o644))
	w.commit(g, gate.Put("test/a", []byte("b")))
	if got, err := os.ReadFile(w.in("test/a")); string(got) != "decoy" {
		t.Errorf("the decoy holds %q, %v", got, err)
	}
	if got, err := os.ReadFile(filepath.Join(top, "moved/test/a")); string(got) != "b" {
		t.Errorf("the root holds %q, %v", got, err)
	}
	w.releases(g)
}

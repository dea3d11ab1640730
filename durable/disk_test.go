//go:build linux

package durable_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"lockkeeper/durable"
	"lockkeeper/durable/durabletest"
	"lockkeeper/internal/machine/machinetest"
)

var disk durable.OSDisk

// place returns a new, open directory.
func place(t *testing.T) *os.File {
	t.Helper()
	return held(t)(os.Open(t.TempDir()))
}

// held closes a file when the test ends.
func held(t *testing.T) func(*os.File, error) *os.File {
	return func(f *os.File, err error) *os.File {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// put creates a file without the Disk.
func put(t *testing.T, at *os.File, name, content string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(at.Name(), name), []byte(content), 0o644))
}

// holds checks the names in a directory and their content.
func holds(t *testing.T, at *os.File, want map[string]string) {
	t.Helper()
	for name, content := range want {
		if got := string(read(t, filepath.Join(at.Name(), name))); got != content {
			t.Errorf("%s holds %q, want %q", name, got, content)
		}
	}
	names, err := disk.List(at)
	if err != nil || len(names) != len(want) {
		t.Errorf("the directory lists %v, %v, want %d names", names, err, len(want))
	}
}

func TestDiskMakesFiles(t *testing.T) {
	at := place(t)
	defer syscall.Umask(syscall.Umask(0))
	must(t, disk.Mkdir(at, "d", 0o750))
	dir := held(t)(disk.OpenDir(at, "d"))
	f := held(t)(disk.Create(dir, "f"))
	before, err := disk.Lstat(dir, "f")
	must(t, err, disk.Write(f, []byte("con")), disk.Write(f, []byte("tent")), disk.Chmod(f, 0o751), disk.Sync(f), disk.Close(f), disk.Sync(dir))
	after, err := disk.Lstat(dir, "f")
	must(t, err)
	if before.Mode != 0o600 || after.Mode != 0o751 || after.Size != 7 || after.Links != 1 || !after.SameFile(before) {
		t.Errorf("before %+v, after %+v", before, after)
	}
	holds(t, dir, map[string]string{"f": "content"})
	if d, err := disk.Lstat(at, "d"); err != nil || d.Mode != fs.ModeDir|0o750 || d.SameFile(after) {
		t.Errorf("the directory is %+v, %v", d, err)
	}
	if _, err := disk.Create(dir, "f"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("created over a file: %v", err)
	}
	if err := disk.Mkdir(at, "d", 0o700); !errors.Is(err, fs.ErrExist) {
		t.Errorf("made over a directory: %v", err)
	}
	if err := disk.RemoveDir(at, "d"); !errors.Is(err, syscall.ENOTEMPTY) {
		t.Errorf("removed a directory that is not empty: %v", err)
	}
	if err := disk.Remove(at, "d"); err == nil {
		t.Error("removed a directory as a file")
	}
	if err := disk.RemoveDir(dir, "f"); err == nil {
		t.Error("removed a file as a directory")
	}
	must(t, disk.Remove(dir, "f"), disk.RemoveDir(at, "d"))
	if _, err := disk.Lstat(at, "d"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("not removed: %v", err)
	}
}

// No operation follows a link in any part of a path.
func TestDiskFollowsNoLink(t *testing.T) {
	at, outside := place(t), place(t)
	put(t, outside, "secret", "secret")
	must(t, os.Mkdir(filepath.Join(at.Name(), "d"), 0o755), os.Mkdir(filepath.Join(at.Name(), "d", "e"), 0o755))
	put(t, at, "inside", "inside")
	for name, to := range map[string]string{
		"dir": outside.Name(), "file": filepath.Join(outside.Name(), "secret"), "near": "inside", "neardir": "d",
		"dangling": filepath.Join(outside.Name(), "new"), "d/up": "..", "magic": "/proc/self/root",
	} {
		must(t, os.Symlink(to, filepath.Join(at.Name(), name)))
	}
	for _, path := range []string{"dir", "neardir", "neardir/e", "d/up", "d/up/d", "magic", "magic/tmp"} {
		if f, err := disk.OpenDir(at, path); !errors.Is(err, syscall.ELOOP) {
			t.Errorf("OpenDir %s: %v, %v", path, f, err)
		}
	}
	for _, name := range []string{"file", "near", "dir", "dir/secret"} {
		if f, err := disk.OpenFile(at, name); !errors.Is(err, syscall.ELOOP) {
			t.Errorf("OpenFile %s: %v, %v", name, f, err)
		}
	}
	if _, err := disk.Create(at, "dangling"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("created through a link: %v", err)
	}
	if s, err := disk.Lstat(at, "file"); err != nil || s.Mode.Type() != fs.ModeSymlink {
		t.Errorf("Lstat of a link: %+v, %v", s, err)
	}
	// A link is moved and removed like any name, and its target stays.
	must(t, disk.Move(at, "file", at, "moved"), disk.Remove(at, "moved"), disk.Exchange(at, "dir", at, "inside"), disk.Remove(at, "inside"))
	holds(t, outside, map[string]string{"secret": "secret"})
	if got := string(read(t, filepath.Join(at.Name(), "dir"))); got != "inside" {
		t.Errorf("exchanged: %q", got)
	}
}

// Nothing is opened or changed outside of the directory that is held open.
func TestDiskStaysInItsDirectory(t *testing.T) {
	top := place(t)
	put(t, top, "secret", "secret")
	must(t, os.MkdirAll(filepath.Join(top.Name(), "at", "d"), 0o755))
	at := held(t)(disk.OpenDir(top, "at"))
	for _, path := range []string{"..", "../at", "d/../..", top.Name(), "/"} {
		if f, err := disk.OpenDir(at, path); !errors.Is(err, syscall.EXDEV) {
			t.Errorf("OpenDir %s: %v, %v", path, f, err)
		}
	}
	for _, name := range []string{"../secret", filepath.Join(top.Name(), "secret")} {
		if f, err := disk.OpenFile(at, name); !errors.Is(err, syscall.EXDEV) {
			t.Errorf("OpenFile %s: %v, %v", name, f, err)
		}
	}
	if f, err := disk.Create(at, "../new"); !errors.Is(err, syscall.EXDEV) {
		t.Errorf("Create: %v, %v", f, err)
	}
	for _, name := range []string{"..", "../secret", "d/x", "/etc/passwd", "d/"} {
		for op, err := range map[string]error{
			"mkdir": disk.Mkdir(at, name, 0o700), "remove": disk.Remove(at, name), "rmdir": disk.RemoveDir(at, name),
			"move from": disk.Move(at, name, at, "x"), "move to": disk.Move(at, "d", at, name), "exchange": disk.Exchange(at, "d", at, name),
		} {
			if !errors.Is(err, fs.ErrInvalid) {
				t.Errorf("%s %s: %v", op, name, err)
			}
		}
	}
	// An open directory also stays the same when another directory takes its path.
	must(t, disk.Move(top, "at", top, "away"), disk.Mkdir(top, "at", 0o755))
	must(t, held(t)(disk.Create(at, "f")).Close())
	if _, err := os.Lstat(filepath.Join(top.Name(), "away", "f")); err != nil {
		t.Error(err)
	}
	if again := held(t)(disk.OpenDir(at, ".")); again.Fd() == at.Fd() {
		t.Error("got the same descriptor")
	}
}

// Other mounts are not entered, not even bind mounts of the same file system.
func TestDiskStaysOnItsMount(t *testing.T) {
	at := place(t)
	for _, name := range []string{"tmpfs", "source", "bind", "file", "over"} {
		must(t, os.Mkdir(filepath.Join(at.Name(), name), 0o755))
	}
	put(t, at, "source/f", "f")
	put(t, at, "over/f", "under")
	path := func(name string) string { return filepath.Join(at.Name(), name) }
	machinetest.Mount(t, "tmpfs", path("tmpfs"), "tmpfs", 0, "")
	machinetest.Mount(t, path("source"), path("bind"), "", unix.MS_BIND, "")
	machinetest.Mount(t, path("source/f"), path("over/f"), "", unix.MS_BIND, "")
	for _, name := range []string{"tmpfs", "bind", "bind/f"} {
		if f, err := disk.OpenDir(at, name); !errors.Is(err, syscall.EXDEV) {
			t.Errorf("OpenDir %s: %v, %v", name, f, err)
		}
	}
	over := held(t)(disk.OpenDir(at, "over"))
	if f, err := disk.OpenFile(over, "f"); !errors.Is(err, syscall.EXDEV) {
		t.Errorf("OpenFile of a mounted file: %v, %v", f, err)
	}
	other := held(t)(os.Open(path("tmpfs")))
	if err := disk.Move(over, "f", other, "f"); err == nil {
		t.Error("moved a mounted file to another file system")
	}
	if err := disk.Move(at, "source", other, "source"); !errors.Is(err, syscall.EXDEV) {
		t.Errorf("moved to another file system: %v", err)
	}
}

// Lstat works on special files, and opening them does not block.
func TestDiskDoesNotWait(t *testing.T) {
	at := place(t)
	must(t, syscall.Mkfifo(filepath.Join(at.Name(), "fifo"), 0o600))
	fifo := held(t)(disk.OpenFile(at, "fifo"))
	if info, err := fifo.Stat(); err != nil || info.Mode().Type() != fs.ModeNamedPipe {
		t.Errorf("opened %v, %v", info, err)
	}
	if s, err := disk.Lstat(at, "fifo"); err != nil || s.Mode.IsRegular() || s.Mode.IsDir() {
		t.Errorf("Lstat: %+v, %v", s, err)
	}
	// Waiting for a leased file would take as long as the kernel gives its holder.
	put(t, at, "leased", "x")
	leased := held(t)(os.OpenFile(filepath.Join(at.Name(), "leased"), os.O_RDWR, 0))
	if _, err := unix.FcntlInt(leased.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Logf("file leases are not supported: %v", err)
		return
	}
	if _, err := disk.OpenFile(at, "leased"); !errors.Is(err, syscall.EAGAIN) {
		t.Errorf("a leased file: %v", err)
	}
}

func TestMoveNeverReplaces(t *testing.T) {
	a, b := place(t), place(t)
	put(t, a, "f", "new")
	put(t, b, "file", "old")
	must(t, disk.Mkdir(b, "empty", 0o755), os.Symlink("nowhere", filepath.Join(b.Name(), "link")), disk.Mkdir(a, "d", 0o755))
	for _, as := range []string{"file", "empty", "link"} {
		for _, name := range []string{"f", "d"} {
			err := disk.Move(a, name, b, as)
			var link *os.LinkError
			if !errors.Is(err, fs.ErrExist) || !errors.As(err, &link) || !strings.HasSuffix(link.New, "/"+as) {
				t.Errorf("%s over %s: %v", name, as, err)
			}
		}
	}
	if err := disk.Move(a, "f", a, "f"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("onto itself: %v", err)
	}
	if err := disk.Move(a, "none", b, "new"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of nothing: %v", err)
	}
	must(t, disk.Move(a, "f", b, "new"), disk.Move(a, "d", b, "dir"))
	holds(t, a, nil)
	if got := string(read(t, filepath.Join(b.Name(), "new"))); got != "new" {
		t.Errorf("moved: %q", got)
	}
}

func TestExchange(t *testing.T) {
	a, b := place(t), place(t)
	put(t, a, "f", "of a")
	put(t, b, "g", "of b")
	must(t, disk.Exchange(a, "f", b, "g"))
	holds(t, a, map[string]string{"f": "of b"})
	holds(t, b, map[string]string{"g": "of a"})
	if err := disk.Exchange(a, "f", b, "none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("with nothing: %v", err)
	}
	if err := disk.Exchange(a, "none", b, "g"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of nothing: %v", err)
	}
	holds(t, a, map[string]string{"f": "of b"})
	must(t, disk.Mkdir(b, "d", 0o755), disk.Exchange(a, "f", b, "d"))
	if s, err := disk.Lstat(a, "f"); err != nil || !s.Mode.IsDir() {
		t.Errorf("a directory for a file: %+v, %v", s, err)
	}
}

func TestListIsWholeEveryTime(t *testing.T) {
	at := place(t)
	var want []string
	for i := range 1000 {
		name := strings.Repeat("n", 1+i%200) + string(rune('a'+i/200))
		want = append(want, name)
		put(t, at, name, "")
	}
	slices.Sort(want)
	for range 2 {
		got, err := disk.List(at)
		slices.Sort(got)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("%d names, %v, want %d", len(got), err, len(want))
		}
	}
	put(t, at, "f", "")
	if _, err := disk.List(held(t)(disk.OpenFile(at, "f"))); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("list of a file: %v", err)
	}
}

func TestClosedHandles(t *testing.T) {
	at, closed := place(t), place(t)
	put(t, at, "f", "content")
	must(t, closed.Close())
	_, openDir := disk.OpenDir(closed, ".")
	_, openFile := disk.OpenFile(closed, "f")
	_, create := disk.Create(closed, "f")
	_, lstat := disk.Lstat(closed, "f")
	_, list := disk.List(closed)
	for op, err := range map[string]error{
		"open_dir": openDir, "open_file": openFile, "create": create, "lstat": lstat, "list": list,
		"mkdir": disk.Mkdir(closed, "d", 0o700), "write": disk.Write(closed, []byte("x")), "chmod": disk.Chmod(closed, 0o700),
		"sync": disk.Sync(closed), "close": disk.Close(closed), "remove": disk.Remove(closed, "f"), "rmdir": disk.RemoveDir(closed, "f"),
		"move from": disk.Move(closed, "f", at, "g"), "move to": disk.Move(at, "f", closed, "f"),
		"exchange from": disk.Exchange(closed, "f", at, "f"), "exchange with": disk.Exchange(at, "f", closed, "f"),
	} {
		if !errors.Is(err, fs.ErrClosed) || !strings.Contains(err.Error(), closed.Name()) {
			t.Errorf("%s: %v", op, err)
		}
	}
	if _, err := disk.Lstat(nil, "f"); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("no directory: %v", err)
	}
	holds(t, at, map[string]string{"f": "content"})
}

// everyOperation runs every operation once, in the order of diskOperations, and stops at the
// first error.
func everyOperation(d durable.Disk, at *os.File) error {
	var dir, f, again *os.File
	steps := []func() error{
		func() error { return d.Mkdir(at, "d", 0o700) },
		func() (err error) { dir, err = d.OpenDir(at, "d"); return err },
		func() (err error) { f, err = d.Create(dir, "f"); return err },
		func() error { return d.Write(f, []byte("content!")) },
		func() error { return d.Chmod(f, 0o640) },
		func() error { return d.Sync(f) },
		func() error { return d.Close(f) },
		func() (err error) { again, err = d.OpenFile(dir, "f"); return err },
		func() error { return again.Close() },
		func() error { _, err := d.Lstat(dir, "f"); return err },
		func() error { _, err := d.List(dir); return err },
		func() error { return d.Move(dir, "f", at, "g") },
		func() error { return d.Exchange(at, "g", at, "d") },
		func() error { return d.Remove(at, "d") },
		func() error { return d.RemoveDir(at, "g") },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return dir.Close()
}

var diskOperations = []durabletest.Op{durabletest.Mkdir, durabletest.OpenDir, durabletest.Create, durabletest.Write, durabletest.Chmod,
	durabletest.Sync, durabletest.Close, durabletest.OpenFile, durabletest.LstatAt, durabletest.List, durabletest.Move,
	durabletest.Exchange, durabletest.RemoveAt, durabletest.RemoveDir}

func TestFaultyDiskCountsAndCallsBefore(t *testing.T) {
	at, faulty := place(t), new(durabletest.FaultyDisk)
	var seen []durabletest.Op
	faulty.At = func(k int, op durabletest.Op) {
		seen = append(seen, op)
		if k != len(seen)-1 {
			t.Errorf("%s is number %d, want %d", op, k, len(seen)-1)
		}
		if _, err := disk.Lstat(at, "d"); op == durabletest.Mkdir && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("called after the operation: %v", err)
		}
	}
	must(t, everyOperation(faulty, at))
	if !slices.Equal(faulty.Trace(), diskOperations) || !slices.Equal(seen, diskOperations) {
		t.Errorf("trace %v, seen %v, want %v", faulty.Trace(), seen, diskOperations)
	}
	holds(t, at, nil)
}

// Every operation can fail by number, by kind and by a crash. Operations after a
// crash do not touch the disk.
func TestFaultyDiskFails(t *testing.T) {
	for k, op := range diskOperations {
		t.Run(string(op), func(t *testing.T) {
			for how, plan := range map[string]func(*durabletest.FaultyDisk){
				"number": func(d *durabletest.FaultyDisk) { d.FailAt(k, syscall.EIO) },
				"kind":   func(d *durabletest.FaultyDisk) { d.FailNext(op, 1, syscall.EIO) },
				"crash":  func(d *durabletest.FaultyDisk) { d.CrashAt(k) },
			} {
				at, faulty := place(t), new(durabletest.FaultyDisk)
				plan(faulty)
				want := error(syscall.EIO)
				if how == "crash" {
					want = durabletest.ErrCrashed
				}
				if err := everyOperation(faulty, at); !errors.Is(err, want) {
					t.Errorf("%s: error %v, want %v", how, err, want)
				}
				if got := faulty.Trace(); !slices.Equal(got, diskOperations[:k+1]) {
					t.Errorf("%s: trace %v", how, got)
				}
				if op == durabletest.Write {
					if got := string(read(t, filepath.Join(at.Name(), "d", "f"))); got != "cont" {
						t.Errorf("%s: the failed write left %q, want half", how, got)
					}
				}
				err := faulty.Mkdir(at, "later", 0o700)
				if _, gone := disk.Lstat(at, "later"); (err != nil) != (how == "crash") || (gone != nil) != (how == "crash") {
					t.Errorf("%s: the next operation: %v, %v", how, err, gone)
				}
			}
		})
	}
}

package tree

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"lockkeeper"
)

// mount mounts for the length of a test, which only root can have.
func mount(t *testing.T, source, target, kind string, flags uintptr, data string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root may mount")
	}
	if err := unix.Mount(source, target, kind, flags, data); err != nil {
		t.Fatalf("cannot mount %s: %v", kind, err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(target, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// A second mount is another device, or a second name for files of this one.
func TestMounts(t *testing.T) {
	r := plant(t, "a/x.rb", "disk/", "bind/", "file.rb", "to -> disk/x")
	path := func(name string) string { return filepath.Join(r.Dir(), name) }
	mount(t, "tmpfs", path("disk"), "tmpfs", 0, "size=64k")
	mount(t, path("a"), path("bind"), "", unix.MS_BIND, "")
	mount(t, path("a/x.rb"), path("file.rb"), "", unix.MS_BIND, "")
	for _, spelling := range []string{"disk", "disk/", "disk/x", "disk/x/y", "to", "bind", "bind/x.rb", "bind/new.rb", "file.rb"} {
		wantRefused(t, r, spelling, read, "another device or mount")
	}
	wantTarget(t, r, "", "a/x.rb", "a/x.rb", lockkeeper.File)
}

// checkFolding holds what every disk that folds case must give, in a directory
// that does.
func checkFolding(t *testing.T, root, dir string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(root, dir, "Sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, dir, "There.rb"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := open(t, root)
	at := func(name string) string { return filepath.Join(dir, name) }
	for path, spellings := range map[string][]string{
		at("there.rb"):     {"There.rb", "there.rb", "THERE.RB"},
		at("new.rb"):       {"New.rb", "new.rb", "NEW.RB"},
		at("sub/new.rb"):   {"Sub/New.rb", "sub/new.rb", "SUB/NEW.rb"},
		at("later/new.rb"): {"Later/New.rb", "later/new.rb"},
		at("\u00e9.rb"):    {"\u00e9.rb", "\u00c9.rb"},
	} {
		for _, spelling := range spellings {
			wantTarget(t, r, "", at(spelling), path, lockkeeper.File)
		}
	}
	for _, spelling := range []string{"Sub", "sub", "SUB/"} {
		wantTarget(t, r, "", at(spelling), at("sub"), lockkeeper.Dir)
	}
}

// needFolding skips where the kernel was built without folding for a kind of disk.
func needFolding(t *testing.T, kind string) {
	t.Helper()
	if _, err := os.Stat("/sys/fs/" + kind + "/features/casefold"); err != nil {
		t.Skipf("this kernel's %s cannot fold case", kind)
	}
}

// shows: GP-2
func TestFoldingTmpfs(t *testing.T) {
	needFolding(t, "tmpfs")
	root := t.TempDir()
	mount(t, "tmpfs", root, "tmpfs", 0, "size=1m,casefold")
	dir := filepath.Join(root, "fold")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	setCasefold(t, dir)
	checkFolding(t, root, "fold")
}

// shows: GP-2
func TestFoldingExt4(t *testing.T) {
	needFolding(t, "ext4")
	if os.Geteuid() != 0 {
		t.Skip("only root may mount")
	}
	image, root := filepath.Join(t.TempDir(), "disk"), t.TempDir()
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, 16<<20); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{
		{"mkfs.ext4", "-q", "-O", "casefold", "-E", "encoding=utf8", image},
		{"mount", "-o", "loop", image, root},
	} {
		if out, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", command, err, out)
		}
	}
	t.Cleanup(func() {
		if err := unix.Unmount(root, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	dir := filepath.Join(root, "fold")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	setCasefold(t, dir)
	checkFolding(t, root, "fold")
	wantTarget(t, open(t, root), "", "New.rb", "New.rb", lockkeeper.File) // beside it names are bytes
}

func setCasefold(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	flags, err := unix.IoctlGetUint32(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, int(flags|flagCasefold))
	}
	if err != nil {
		t.Fatalf("make %s fold case: %v", dir, err)
	}
}

// A whole disk that folds, if the person who runs the tests has one.
func TestFoldingDisk(t *testing.T) {
	dir := os.Getenv("LOCKKEEPER_TEST_FOLDING_DIR")
	if dir == "" {
		t.Skip("LOCKKEEPER_TEST_FOLDING_DIR names no directory on a disk that folds case")
	}
	root, err := os.MkdirTemp(dir, "Root")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(root)
	checkFolding(t, root, "")
}

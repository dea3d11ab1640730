package machinetest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// Lacks ends a test that this machine cannot run, and reports the reason.
func Lacks(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Geteuid() == 0 {
		t.Fatalf("this machine lacks what the test needs: "+format, args...)
	}
	t.Skipf(format, args...)
}

// Mount mounts a file system until the test ends or calls the returned function. It needs root.
func Mount(t testing.TB, source, target, kind string, flags uintptr, data string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root may mount")
	}
	if err := unix.Mount(source, target, kind, flags, data); err != nil {
		t.Fatalf("mount %s %s at %s: %v", kind, source, target, err)
	}
	unmountLater(t, target)
}

func unmountLater(t testing.TB, target string) {
	t.Cleanup(func() {
		if err := unix.Unmount(target, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
			t.Error(err)
		}
	})
}

// Image returns a directory on its own disk, which is a file of the given size that a command
// such as mkfs.ext4 formats. It needs root.
func Image(t testing.TB, size int64, mkfs ...string) (dir string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root may mount")
	}
	image, dir := filepath.Join(t.TempDir(), "disk"), t.TempDir()
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, size)); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{append(mkfs, image), {"mount", "-o", "loop", image, dir}} {
		if out, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", command, err, out)
		}
	}
	unmountLater(t, dir)
	return dir
}

// EachFoldingDisk runs a test in a directory on each kind of disk on which this kernel supports
// directories that ignore case (Fold).
func EachFoldingDisk(t *testing.T, test func(t *testing.T, dir string)) {
	t.Run("tmpfs", func(t *testing.T) {
		if !canFold("tmpfs") {
			t.Skip("this kernel's tmpfs cannot fold case")
		}
		dir := t.TempDir()
		Mount(t, "tmpfs", dir, "tmpfs", 0, "size=1m,casefold")
		test(t, emptyIn(t, dir))
	})
	t.Run("ext4", func(t *testing.T) {
		if os.Geteuid() == 0 { // the kernel reports its features once the module is loaded
			Image(t, 4<<20, "mkfs.ext4", "-q")
		}
		if !canFold("ext4") {
			t.Skip("this kernel's ext4 cannot fold case")
		}
		test(t, emptyIn(t, Image(t, 16<<20, "mkfs.ext4", "-q", "-O", "casefold", "-E", "encoding=utf8")))
	})
}

// emptyIn returns an empty directory on a disk, which may already contain directories.
func emptyIn(t testing.TB, disk string) string {
	t.Helper()
	dir := filepath.Join(disk, "root")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func canFold(kind string) bool {
	_, err := os.Stat("/sys/fs/" + kind + "/features/casefold")
	return err == nil
}

// Fold makes a new directory that ignores case, also in directories created below it.
func Fold(t testing.TB, dir string) {
	t.Helper()
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const casefold = 0x40000000 // FS_CASEFOLD_FL of linux/fs.h
	flags, err := unix.IoctlGetUint32(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, int(flags|casefold))
	}
	if err != nil {
		t.Fatalf("make %s fold case: %v", dir, err)
	}
}

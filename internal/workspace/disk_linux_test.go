package workspace

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// mount mounts for the length of a test, which only root can have.
func mount(t *testing.T, source, target, kind string, flags uintptr) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root may mount")
	}
	must(t, unix.Mount(source, target, kind, flags, ""))
	t.Cleanup(func() {
		if err := unix.Unmount(target, unix.MNT_DETACH); err != nil && err != unix.EINVAL && err != unix.ENOENT { // the test may have done it
			t.Error(err)
		}
	})
}

// Closing a workspace never goes into what is mounted in it: that may be the shared
// tree.
func TestMountsAreNotRemoved(t *testing.T) {
	root := base(t)
	w := open(t, Options{Root: root})
	for _, dir := range []string{"here", "deep/er"} {
		must(t, os.MkdirAll(filepath.Join(w.Dir(), dir), 0o755))
		mount(t, root, filepath.Join(w.Dir(), dir), "", unix.MS_BIND)
	}
	mount(t, filepath.Join(root, "a.rb"), filepath.Join(w.Dir(), "a.rb"), "", unix.MS_BIND)
	before := snapshot(t, root)
	if _, err := w.Changes(t.Context()); err == nil || !strings.Contains(err.Error(), "mounted") {
		t.Errorf("%v", err)
	}
	if err := w.Close(t.Context(), false); err == nil || !strings.Contains(err.Error(), "mounted") {
		t.Errorf("%v", err)
	}
	same(t, "the shared tree", snapshot(t, root), before)
	left, err := Abandoned(t.Context(), filepath.Dir(w.Home()))
	if err != nil || len(left) != 1 {
		t.Fatalf("%v, %v", left, err)
	}
	var mounted []string
	table, err := os.ReadFile("/proc/self/mounts")
	must(t, err)
	for line := range strings.Lines(string(table)) {
		if at := strings.Fields(line)[1]; strings.HasPrefix(at, w.Home()) {
			mounted = append(mounted, at)
		}
	}
	for _, at := range mounted {
		must(t, unix.Unmount(at, unix.MNT_DETACH))
	}
	again, err := Adopt(w.Home(), nil)
	must(t, err)
	must(t, again.Close(t.Context(), false))
	same(t, "the shared tree", snapshot(t, root), before)
}

// What is mounted in the shared tree is part of it, unless it is where workspaces
// are.
func TestMountsAreCopied(t *testing.T) {
	root, dir := base(t), t.TempDir()
	for _, at := range []string{"volume", "loop"} {
		must(t, os.Mkdir(filepath.Join(root, at), 0o755))
	}
	mount(t, "tmpfs", filepath.Join(root, "volume"), "tmpfs", 0)
	write(t, root, "volume/x/y", "on another disk")
	mount(t, dir, filepath.Join(root, "loop"), "", unix.MS_BIND)
	w := open(t, Options{Root: root, Dir: dir})
	if got := read(t, w.Dir(), "volume/x/y"); got != "on another disk" {
		t.Errorf("copied is %q", got)
	}
	if isThere(filepath.Join(w.Dir(), "loop")) {
		t.Error("the workspaces are copied into themselves")
	}
	wantChanges(t, w)
}

// reflinkDisk is a directory on a disk that can share blocks between files.
func reflinkDisk(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("LOCKKEEPER_TEST_REFLINK_DIR"); dir != "" {
		dir, err := os.MkdirTemp(dir, "workspace")
		must(t, err)
		t.Cleanup(func() { os.RemoveAll(dir) })
		return dir
	}
	if os.Geteuid() != 0 {
		t.Skip("only root may mount, and LOCKKEEPER_TEST_REFLINK_DIR names no directory")
	}
	image, at := filepath.Join(t.TempDir(), "disk"), t.TempDir()
	must(t, os.WriteFile(image, nil, 0o600))
	must(t, os.Truncate(image, 512<<20))
	made := false
	for _, command := range [][]string{{"mkfs.xfs", "-q", image}, {"mkfs.btrfs", "-q", image}} {
		if _, err := exec.LookPath(command[0]); err != nil || made {
			continue
		}
		out, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput()
		if made = err == nil; !made {
			t.Logf("%v: %v: %s", command, err, out)
		}
	}
	if !made {
		t.Skip("neither mkfs.xfs nor mkfs.btrfs works here")
	}
	if out, err := exec.CommandContext(t.Context(), "mount", "-o", "loop", image, at).CombinedOutput(); err != nil {
		t.Skipf("mount: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(at, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return at
}

// Where the disk can, a copy takes no space.
func TestClonedCopies(t *testing.T) {
	disk := reflinkDisk(t)
	root := filepath.Join(disk, "shared")
	write(t, root, "big", strings.Repeat("0123456789abcdef", 4<<20)) // 64 MiB
	write(t, root, "small", "x")
	write(t, root, "empty", "")
	must(t, exec.CommandContext(t.Context(), "sync", "-f", root).Run())
	free := func() uint64 {
		var st unix.Statfs_t
		must(t, unix.Statfs(disk, &st))
		return st.Bfree * uint64(st.Bsize)
	}
	before := free()
	var all []*Workspace
	for range 4 {
		all = append(all, open(t, Options{Root: root, Dir: filepath.Join(disk, "workspaces")}))
	}
	must(t, exec.CommandContext(t.Context(), "sync", "-f", root).Run())
	if used := int64(before) - int64(free()); used > 16<<20 {
		t.Errorf("four copies of 64 MiB took %d bytes", used)
	}
	for _, w := range all {
		same(t, "a copy", snapshot(t, w.Dir()), snapshot(t, root))
		wantChanges(t, w)
	}
	write(t, all[0].Dir(), "big", "mine")
	wantChanges(t, all[0], "modified big")
	takeAll(t, all[0])
	same(t, "put back", snapshot(t, all[0].Dir()), snapshot(t, root))
}

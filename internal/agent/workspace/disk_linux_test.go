package workspace

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"lockkeeper/internal/machine/machinetest"
)

// Closing a workspace never removes files of a mount in it, which may be the shared tree.
func TestMountsAreNotRemoved(t *testing.T) {
	onlyCopies(t, "nothing can be mounted in the upper directory")
	root := base(t)
	w := open(t, Options{Root: root})
	for _, dir := range []string{"here", "deep/er"} {
		must(t, os.MkdirAll(filepath.Join(tree(t, w), dir), 0o755))
		machinetest.Mount(t, root, filepath.Join(tree(t, w), dir), "", unix.MS_BIND, "")
	}
	machinetest.Mount(t, filepath.Join(root, "a.rb"), filepath.Join(tree(t, w), "a.rb"), "", unix.MS_BIND, "")
	before := contents(t, root)
	if _, err := w.Changes(t.Context()); err == nil || !strings.Contains(err.Error(), "mount point") {
		t.Errorf("%v", err)
	}
	if err := w.Close(t.Context(), false); err == nil || !strings.Contains(err.Error(), "mount point") {
		t.Errorf("%v", err)
	}
	same(t, "the shared tree", contents(t, root), before)
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
	same(t, "the shared tree", contents(t, root), before)
}

// A file system mounted in the shared tree is copied, unless it contains the workspaces.
func TestMountsAreCopied(t *testing.T) {
	root, dir := base(t), t.TempDir()
	for _, at := range []string{"volume", "loop"} {
		must(t, os.Mkdir(filepath.Join(root, at), 0o755))
	}
	machinetest.Mount(t, "tmpfs", filepath.Join(root, "volume"), "tmpfs", 0, "")
	write(t, root, "volume/x/y", "on another disk")
	machinetest.Mount(t, dir, filepath.Join(root, "loop"), "", unix.MS_BIND, "")
	w := open(t, Options{Root: root, Dir: dir})
	if got := read(t, tree(t, w), "volume/x/y"); got != "on another disk" {
		t.Errorf("copied is %q", got)
	}
	if isThere(filepath.Join(tree(t, w), "loop")) {
		t.Error("the workspaces are copied into themselves")
	}
	wantChanges(t, w)
}

// reflinkDisk returns a directory on a disk that can share blocks between files.
func reflinkDisk(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("LOCKKEEPER_TEST_REFLINK_DIR"); dir != "" {
		dir, err := os.MkdirTemp(dir, "workspace")
		must(t, err)
		t.Cleanup(func() { os.RemoveAll(dir) })
		return dir
	}
	return machinetest.Image(t, 512<<20, "mkfs.xfs", "-q") // `make test` installs it
}

// If the disk can clone files, a workspace takes no space.
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
		same(t, "a copy", contents(t, tree(t, w)), contents(t, root))
		wantChanges(t, w)
	}
	write(t, tree(t, all[0]), "big", "mine")
	wantChanges(t, all[0], "modified big")
	takeAll(t, all[0])
	same(t, "restored", contents(t, tree(t, all[0])), contents(t, root))
}

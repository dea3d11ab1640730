package sqlstore

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"lockkeeper/internal/filelock"
	"lockkeeper/internal/machinetest"
	"lockkeeper/lock"
)

func TestSQLiteOnReadOnlyDisk(t *testing.T) {
	dir := tinyDisk(t, "1m")
	s := site{kind: "sqlite", where: filepath.Join(dir, "state.db"), space: "s"}
	if err := CreateSQLite(t.Context(), s.where, s.space); err != nil {
		t.Fatal(err)
	}
	fill(t, s, "a")
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	_, err := OpenSQLite(t.Context(), s.where, s.space, Options{})
	wantStore(t, err, "its disk is read-only")
}

// What does not fit on the disk is not half there, and what is held can still
// be seen.
func TestSQLiteOnFullDisk(t *testing.T) {
	dir := tinyDisk(t, "1m")
	s := site{kind: "sqlite", where: filepath.Join(dir, "state.db"), space: "s"}
	if err := CreateSQLite(t.Context(), s.where, s.space); err != nil {
		t.Fatal(err)
	}
	m := lock.New(s.store(t, Options{}), lock.Options{})
	var held []string
	var err error
	for i := 0; err == nil && i < 1000; i++ {
		var paths []string
		for j := range 50 {
			paths = append(paths, fmt.Sprintf("%s%d/%d", strings.Repeat("long/", 20), i, j))
		}
		var g *lock.Grant
		if g, err = m.TryAcquire(t.Context(), request("h", paths...)); err == nil {
			held = append(held, g.ID)
		}
	}
	wantStore(t, err, "disk is full")
	grants, err := m.ActiveGrants(t.Context())
	if err != nil || len(grants) != len(held) || len(held) == 0 {
		t.Errorf("%d grants are there, want the %d that were answered, %v", len(grants), len(held), err)
	}
}

// tinyDisk mounts a small file system of its own.
func tinyDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	machinetest.Mount(t, "tmpfs", dir, "tmpfs", 0, "size="+size)
	return dir
}

func TestSQLiteOnNetworkDisk(t *testing.T) {
	disks := filelock.NetworkDisks()
	for _, name := range disks {
		wantStore(t, refuseDisk("/mnt/team", name), "network file system ("+name+")")
	}
	for _, local := range []int64{unix.EXT4_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.OVERLAYFS_SUPER_MAGIC} {
		if err := refuseDisk("/home", disks[local]); err != nil {
			t.Error(err)
		}
	}
}

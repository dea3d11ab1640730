package gate_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"lockkeeper/durable/durabletest"
	"lockkeeper/gate"
)

// A syncedDisk notes which files and directories were synced. When a directory with the name final
// is put in place, everything in it must have been.
type syncedDisk struct {
	durabletest.FaultyDisk
	t     *testing.T
	final string

	mu     sync.Mutex
	synced map[uint64]bool // inodes, since the directory was put in place
	placed int
}

func inode(info fs.FileInfo) uint64 { return info.Sys().(*syscall.Stat_t).Ino }

// Sync implements durable.Disk.
func (d *syncedDisk) Sync(f *os.File) error {
	err := d.FaultyDisk.Sync(f)
	if info, stat := f.Stat(); err == nil && stat == nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.synced[inode(info)] = true
	}
	return err
}

// Exchange implements durable.Disk.
func (d *syncedDisk) Exchange(a *os.File, name string, b *os.File, as string) error {
	return d.place(a, name, as, func() error { return d.FaultyDisk.Exchange(a, name, b, as) })
}

// Move implements durable.Disk.
func (d *syncedDisk) Move(from *os.File, name string, to *os.File, as string) error {
	return d.place(from, name, as, func() error { return d.FaultyDisk.Move(from, name, to, as) })
}

func (d *syncedDisk) place(from *os.File, name, as string, rename func() error) error {
	if as != d.final {
		return rename()
	}
	d.mu.Lock()
	root := fmt.Sprintf("/proc/self/fd/%d/%s", from.Fd(), name)
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && !d.synced[inode(info)] {
			d.t.Errorf("%s was not synced before it was put in place", path[len(root):]+"/")
		}
		return err
	})
	d.synced, d.placed = map[uint64]bool{}, d.placed+1
	d.mu.Unlock()
	if err != nil {
		return err
	}
	return rename()
}

// Every file and every directory of the new version is on disk before the rename, and the
// directory above it after the rename.
//
// shows: DL-46 DL-47
func TestReplaceDirIsSynced(t *testing.T) {
	disk := &syncedDisk{t: t, final: "current", synced: map[uint64]bool{}}
	w := newWorld(t, map[string]string{"maps/m1/x": ""}, gate.Options{Allowed: []string{"maps"}, Disk: disk})
	g := w.holdDir("maps/m1")
	for round, files := range []map[string]string{{"a": "1", "tiles/0/0": "1"}, {"a": "2", "tiles/0/1": "2", "b/c/d": "2"}} {
		w.replace(g, "maps/m1", "current", files)
		parent, err := os.Stat(w.in("maps/m1"))
		must(t, err)
		disk.mu.Lock()
		if disk.placed != round+1 || !disk.synced[inode(parent)] {
			t.Errorf("round %d: %d directories were put in place; the directory above was synced: %t", round, disk.placed, disk.synced[inode(parent)])
		}
		disk.mu.Unlock()
	}
}

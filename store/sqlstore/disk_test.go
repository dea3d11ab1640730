package sqlstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/internal/machine/filelock"
	"lockkeeper/internal/machine/machinetest"
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

// A write to a full disk leaves nothing partial, and existing locks stay readable.
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
		var g *lock.Grant
		if g, err = m.TryAcquire(t.Context(), many(i)); err == nil {
			held = append(held, g.ID)
		}
	}
	wantStore(t, err, "disk is full")
	grants, err := m.ActiveGrants(t.Context())
	if err != nil || len(grants) != len(held) || len(held) == 0 {
		t.Errorf("%d grants are there, want the %d that were answered, %v", len(grants), len(held), err)
	}
}

// A store that met a full disk works again as soon as there is space, without being opened
// again: for the process that met it, and for others that have it open or open it meanwhile.
func TestSQLiteAfterFullDisk(t *testing.T) {
	for name, before := range map[string]func(*lock.Manager){
		"full from the start": func(*lock.Manager) {},
		"full after some": func(m *lock.Manager) {
			if _, err := m.TryAcquire(t.Context(), request("h", "early")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := tinyDisk(t, "1m")
			s := site{kind: "sqlite", where: filepath.Join(dir, "state.db"), space: "s"}
			if err := CreateSQLite(t.Context(), s.where, s.space); err != nil {
				t.Fatal(err)
			}
			open := map[string]*lock.Manager{"one": lock.New(s.store(t, Options{}), lock.Options{}), "other": lock.New(s.store(t, Options{}), lock.Options{})}
			before(open["one"])
			ballast := filepath.Join(dir, "ballast")
			fillDisk(t, ballast)
			var err error
			for i := 0; err == nil && i < 1000; i++ {
				_, err = open["one"].TryAcquire(t.Context(), many(i))
			}
			wantStore(t, err, "disk is full")
			for name, m := range open { // failed writes must not make it worse
				for i := range 20 {
					_, err := m.TryAcquire(t.Context(), many(2000+i))
					wantStore(t, err, "disk is full")
				}
				if _, err := m.ActiveGrants(t.Context()); err != nil {
					t.Errorf("%s cannot look: %v", name, err)
				}
			}
			if late, err := OpenSQLite(t.Context(), s.where, s.space, Options{}); err != nil {
				wantStore(t, err, "disk is full")
			} else {
				defer late.Close()
				open["late"] = lock.New(late, lock.Options{})
			}
			if err := os.Remove(ballast); err != nil {
				t.Fatal(err)
			}
			for name, m := range open {
				g, err := m.TryAcquire(t.Context(), request("h", "after/"+name))
				if err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				if err := g.Release(t.Context()); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
}

// Any freed space is available to new requests, however little. It must not be used up by a
// checkpoint of the log that cannot complete.
func TestSQLiteUsesFreedSpace(t *testing.T) {
	dir := tinyDisk(t, "6m")
	s := site{kind: "sqlite", where: filepath.Join(dir, "state.db"), space: "s"}
	if err := CreateSQLite(t.Context(), s.where, s.space); err != nil {
		t.Fatal(err)
	}
	ballast := []string{filepath.Join(dir, "ballast"), filepath.Join(dir, "more")}
	for i, size := range []int{768 << 10, 1 << 20} {
		if err := os.WriteFile(ballast[i], make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m := lock.New(s.store(t, Options{}), lock.Options{})
	var held []*lock.Grant
	var err error
	for i := 0; err == nil && i < 1000; i++ {
		var g *lock.Grant
		if g, err = m.TryAcquire(t.Context(), many(i)); err == nil {
			held = append(held, g)
		}
	}
	wantStore(t, err, "disk is full")
	if err := os.Remove(ballast[0]); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		if _, err := m.TryAcquire(t.Context(), request("h", fmt.Sprint("small", i))); err != nil {
			t.Fatalf("request %d after space was freed: %v", i, err)
		}
	}
	if err := os.Remove(ballast[1]); err != nil {
		t.Fatal(err)
	}
	for _, g := range held {
		if err := g.Release(t.Context()); err != nil {
			t.Fatalf("release of %d: %v", len(held), err)
		}
	}
}

// many returns a request that needs more than one database page.
func many(n int) lockkeeper.Request {
	var paths []string
	for j := range 50 {
		paths = append(paths, fmt.Sprintf("%s%d/%d", strings.Repeat("long/", 20), n, j))
	}
	return request("h", paths...)
}

// fillDisk fills the disk of a file to the last byte.
func fillDisk(t *testing.T, file string) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	for size := 64 << 10; size > 0; size /= 2 {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// tinyDisk mounts a small file system and returns its directory.
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

package tree

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/internal/machine/machinetest"
)

// A second mount is another device, or gives files of this device a second name.
func TestMounts(t *testing.T) {
	r := plant(t, "a/x.rb", "disk/", "bind/", "file.rb", "to -> disk/x")
	path := func(name string) string { return filepath.Join(r.Dir(), name) }
	machinetest.Mount(t, "tmpfs", path("disk"), "tmpfs", 0, "size=64k")
	machinetest.Mount(t, path("a"), path("bind"), "", unix.MS_BIND, "")
	machinetest.Mount(t, path("a/x.rb"), path("file.rb"), "", unix.MS_BIND, "")
	for _, spelling := range []string{"disk", "disk/", "disk/x", "disk/x/y", "to", "bind", "bind/x.rb", "bind/new.rb", "file.rb"} {
		wantRefused(t, r, spelling, read, "another device or mount")
	}
	wantTarget(t, r, "", "a/x.rb", "a/x.rb", lockkeeper.File)
}

// checkFolding checks the targets in a directory that folds case.
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

// Case-folding directories and ordinary ones work in one tree, and a root may be in a
// case-folding directory.
//
// shows: GP-2
func TestFoldingDisks(t *testing.T) {
	machinetest.EachFoldingDisk(t, func(t *testing.T, root string) {
		machinetest.Fold(t, filepath.Join(root, "fold"))
		checkFolding(t, root, "fold")
		wantTarget(t, open(t, root), "", "New.rb", "New.rb", lockkeeper.File) // ordinary directories do not fold
		machinetest.Fold(t, filepath.Join(root, "Whole"))
		checkFolding(t, filepath.Join(root, "Whole"), "")
	})
	// A whole case-folding disk, if the environment has one.
	if dir := os.Getenv("LOCKKEEPER_TEST_FOLDING_DIR"); dir != "" {
		root, err := os.MkdirTemp(dir, "Root")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(root)
		checkFolding(t, root, "")
	}
}

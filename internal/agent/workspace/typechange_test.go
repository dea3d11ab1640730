package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A path whose type changes between two reads is copied again, and the copy has one of
// the two types.
func TestTypeChangeIsCopiedAgain(t *testing.T) {
	kinds := map[string]map[string]string{
		"file": {"x": "file"}, "link": {"x": "->a"}, "folder": {"x/y/z": "inside"}, "empty": {"x/": ""}, "nothing": {},
	}
	for was, copied := range kinds {
		for now, turned := range kinds {
			t.Run(was+" to "+now, func(t *testing.T) {
				root := t.TempDir()
				plant(t, root, copied)
				w := open(t, Options{Root: root})
				from, err := openOrigin(root, nil)
				must(t, err)
				defer from.close()
				b := newRefresher(t.Context(), w, from)
				b.complete, b.turned = map[string]bool{}, area{}
				all := map[string]bool{}
				must(t, b.collect("x", all))
				must(t, b.clear("x"))
				must(t, os.RemoveAll(filepath.Join(root, "x")))
				plant(t, root, turned)
				must(t, b.collect("x", all)) // as if x had this type before
				for _, path := range []string{"x", "x/y", "x/y/z"} {
					if all[path] {
						must(t, b.put(path))
					}
				}
				wantChanges(t, w)
				if len(b.conflicts) > 0 {
					t.Errorf("conflicts %v", b.conflicts)
				}
				must(t, b.bring([]string{"x"}))
				same(t, "the copy", contents(t, tree(t, w)), contents(t, root))
				wantChanges(t, w)
				if len(b.conflicts) > 0 || len(w.Oddities()) > 0 {
					t.Errorf("conflicts %v, oddities %v", b.conflicts, w.Oddities())
				}
			})
		}
	}
}

// A link or pipe that replaced a file is not read as the file.
func TestReplacedIsNotRead(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "file", "file")
	fd, err := openAt(unix.AT_FDCWD, dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	must(t, err)
	defer closeFD(fd)
	seen, err := statAt(fd, "file")
	must(t, err)
	for name, replace := range map[string]func(path string) error{
		"folder": func(path string) error { return os.Mkdir(path, 0o755) },
		"link":   func(path string) error { return os.Symlink("file", path) },
		"pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"none":   func(string) error { return nil },
	} {
		must(t, replace(filepath.Join(dir, name)))
		if _, err := newWorker(t.Context()).copyFile(fd, name, seen, fd, "copy", &means{}); !errors.Is(err, errReplaced) {
			t.Errorf("a %s was copied: %v", name, err)
		}
		if isThere(filepath.Join(dir, "copy")) {
			t.Errorf("a copy was made of a %s", name)
		}
	}
}

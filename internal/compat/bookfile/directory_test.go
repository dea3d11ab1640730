package bookfile_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/internal/compat/bookfile"
)

// refused checks that a file is neither read nor written, and that the error describes the file
// and the next step.
func refused(t *testing.T, f *bookfile.File, fact string) {
	t.Helper()
	err := f.Update(t.Context(), func(bookfile.Reading) ([]bookfile.Entry, error) {
		t.Error("it was read")
		return nil, nil
	})
	var store *lockkeeper.StoreError
	if !errors.As(err, &store) || store.Next == "" || !strings.Contains(err.Error(), fact) {
		t.Errorf("refused with %v; want %q", err, fact)
	}
}

func pipe(path string) error   { return syscall.Mkfifo(path, 0o644) }
func socket(path string) error { return unix.Mknod(path, unix.S_IFSOCK|0o644, 0) }

// shows: CF-38
func TestWhatIsNoFileIsLeftAlone(t *testing.T) {
	for fact, make := range map[string]func(path string) error{
		"a directory":             func(path string) error { return os.Mkdir(path, 0o755) },
		"a pipe":                  pipe,
		"a socket":                socket,
		"a link to /etc/hostname": func(path string) error { return os.Symlink("/etc/hostname", path) },
		"a link to real.json": func(path string) error {
			return errors.Join(os.WriteFile(filepath.Join(filepath.Dir(path), "real.json"), []byte(documented), 0o644), os.Symlink("real.json", path))
		},
		"over the limit of 1048576": func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o644), os.Truncate(path, 1<<20+1))
		},
	} {
		t.Run(fact, func(t *testing.T) {
			f := newFile(t)
			must(t, os.MkdirAll(filepath.Dir(f.Path()), 0o755))
			must(t, make(f.Path()))
			before, err := os.Lstat(f.Path())
			must(t, err)
			refused(t, f, fact)
			if after, err := os.Lstat(f.Path()); err != nil || !os.SameFile(before, after) {
				t.Errorf("it became %v, %v", after, err)
			}
		})
	}
}

// Whatever replaces the directory, or one of its parents, nothing is written through it.
//
// shows: CF-38
func TestDirectoryThatLeadsElsewhere(t *testing.T) {
	for fact, make := range map[string]func(path string) error{
		"a file":   func(path string) error { return os.WriteFile(path, nil, 0o644) },
		"a pipe":   pipe,
		"a socket": socket,
	} {
		t.Run(fact, func(t *testing.T) {
			f := newFile(t)
			must(t, make(filepath.Dir(f.Path())))
			refused(t, f, filepath.Dir(f.Path())+" is "+fact)
		})
	}
	for name, to := range map[string]func(root, outside string) string{
		"by its whole path": func(_, outside string) string { return outside },
		"by a way up":       func(root, outside string) string { return "../" + filepath.Base(outside) },
		"back into the root by a way up": func(root, _ string) string {
			return "../" + filepath.Base(root) + "/inside"
		},
	} {
		t.Run("a link out of the root "+name, func(t *testing.T) {
			base := t.TempDir()
			root, outside := filepath.Join(base, "book"), filepath.Join(base, "outside")
			must(t, os.MkdirAll(filepath.Join(root, "inside", "deep"), 0o755))
			must(t, os.MkdirAll(filepath.Join(outside, "deep"), 0o755))
			link := filepath.Join(root, ".locks")
			must(t, os.Symlink(to(root, outside), link))
			for _, file := range []string{".locks/locks.json", ".locks/deep/locks.json", ".locks/new/locks.json"} {
				refused(t, bookfile.Open(root, file), link+" is a link to "+to(root, outside))
			}
			for _, dir := range []string{outside, filepath.Join(outside, "deep")} {
				if found, err := filepath.Glob(filepath.Join(dir, "*lock*")); err != nil || len(found) > 0 {
					t.Errorf("left outside: %v, %v", found, err)
				}
			}
			if _, err := os.Lstat(filepath.Join(outside, "new")); err == nil {
				t.Error("a directory was made outside")
			}
		})
	}
}

// A link that stays inside the root is followed.
func TestDirectoryElsewhereInTheRoot(t *testing.T) {
	root := t.TempDir()
	must(t, os.Mkdir(filepath.Join(root, "Process"), 0o755))
	must(t, os.Symlink("Process", filepath.Join(root, ".locks")))
	f := bookfile.Open(root, ".locks/locks.json")
	must(t, f.Update(t.Context(), func(bookfile.Reading) ([]bookfile.Entry, error) { return example, nil }))
	if got := content(t, f); got != documented {
		t.Errorf("it holds %s", got)
	}
}

// A hard link of the file keeps its content, because the file is replaced.
func TestOtherNamesOfTheFileKeepIt(t *testing.T) {
	f := newFile(t)
	write(t, f, documented)
	other := filepath.Join(t.TempDir(), "snapshot.json")
	must(t, os.Link(f.Path(), other))
	must(t, f.Update(t.Context(), func(bookfile.Reading) ([]bookfile.Entry, error) { return example[:1], nil }))
	text, err := os.ReadFile(other)
	if err != nil || string(text) != documented {
		t.Errorf("under its other name it holds %s, %v", text, err)
	}
	if got, err := bookfile.Decode([]byte(content(t, f))); err != nil || len(got) != 1 {
		t.Errorf("it holds %v, %v", got, err)
	}
}

// A file too large to be read again is not written.
func TestNothingIsWrittenOverTheLimit(t *testing.T) {
	f := newFile(t)
	write(t, f, documented)
	var many []bookfile.Entry
	for n := range 12_000 {
		many = append(many, entry(fmt.Sprintf("Chapter_%05d", n), "2025-11-22T10:30:00Z", "CLI-1"))
	}
	err := f.Update(t.Context(), func(bookfile.Reading) ([]bookfile.Entry, error) { return many, nil })
	if lockkeeper.CodeOf(err) != lockkeeper.CodeStore || !strings.Contains(err.Error(), "over the limit of 1048576") || !strings.Contains(err.Error(), "next: release") {
		t.Errorf("refused with %v", err)
	}
	if got := content(t, f); got != documented {
		t.Errorf("it holds %d bytes", len(got))
	}
	must(t, f.Update(t.Context(), func(bookfile.Reading) ([]bookfile.Entry, error) { return many[:1_000], nil }))
	must(t, f.Update(t.Context(), func(r bookfile.Reading) ([]bookfile.Entry, error) { return r.Entries[:1], nil }))
}

// The guard is only locked: a link in its place is not followed, and a pipe does not
// block.
func TestOddGuard(t *testing.T) {
	f := newFile(t)
	must(t, os.MkdirAll(filepath.Dir(f.Path()), 0o755))
	guard, outside := f.Path()+".guard", filepath.Join(t.TempDir(), "outside")
	must(t, os.Symlink(outside, guard))
	refused(t, f, "its guard cannot be opened")
	if _, err := os.Lstat(outside); err == nil {
		t.Error("a file was made through the link")
	}
	must(t, os.Remove(guard))
	must(t, syscall.Mkfifo(guard, 0o644))
	must(t, f.Update(t.Context(), func(bookfile.Reading) ([]bookfile.Entry, error) { return example, nil }))
}

package sqlstore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"lockkeeper/store"
)

// The files of a store are readable only by their owner, under any umask. Files that an earlier
// version left readable are corrected.
func TestFilesArePrivate(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	s := sqliteSite(t)
	look := func(when string) {
		t.Helper()
		seen := ""
		noError(t, filepath.WalkDir(filepath.Dir(s.where), func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) || path == filepath.Dir(s.where) {
				return nil
			}
			info, err := d.Info()
			if err == nil && info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s: %s is %s", when, filepath.Base(path), info.Mode())
			}
			seen += d.Name() + " "
			return err
		}))
		if !strings.Contains(seen, "state.db-turn") {
			t.Errorf("%s: %s", when, seen)
		}
	}
	look("made")
	use := func(when string) {
		t.Helper()
		st, err := s.open(t.Context(), Options{})
		noError(t, err)
		noError(t, st.Update(t.Context(), func(store.Tx) error { return nil }), st.View(t.Context(), func(store.Reader) error { return nil }))
		look(when)
		noError(t, st.Close())
		look(when + ", closed")
	}
	use("in use")
	for _, end := range companions {
		f, err := os.OpenFile(s.where+end, os.O_CREATE, 0o644)
		noError(t, err)
		noError(t, f.Chmod(0o644), f.Close())
	}
	use("left open")
}

func noError(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

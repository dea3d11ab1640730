package author_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/durable/durabletest"
	"lockkeeper/internal/compat/author"
)

// An unreadable file proves nothing: current claims stay held, and nothing can be claimed
// or released until it is repaired. The error says how.
//
// shows: LM-39 CF-38
func TestUnreadableFileFreesNothing(t *testing.T) {
	if !durabletest.Unprivileged(t) {
		return
	}
	s := newStudy(t, "")
	one, _ := s.instance("CLI-1")
	two, _ := s.instance("CLI-2")
	s.claim(one, "Chapter_01")
	s.foreign(append(s.file(), entry("Chapter_02", "CLI-9", time.Minute))...)
	s.listed()
	whole, err := os.ReadFile(s.path())
	must(t, err)
	for _, shut := range []string{s.path(), filepath.Dir(s.path())} {
		info, err := os.Stat(shut)
		must(t, err, os.Chmod(shut, 0))
		s.frozen(one, two)
		must(t, os.Chmod(shut, info.Mode().Perm()))
		if now, err := os.ReadFile(s.path()); err != nil || string(now) != string(whole) {
			t.Errorf("after %s could be read again the file has %s, %v", shut, now, err)
		}
		for name, instance := range map[string]string{"Chapter_01": "CLI-1", "Chapter_02": "CLI-9"} {
			if got := s.blocked(two, name); got[0].Instance != instance {
				t.Errorf("%s is held by %s", name, got[0].Instance)
			}
		}
	}
	_, err = s.Unclaim(t.Context(), one, nil)
	must(t, err)
	s.claim(two, "Chapter_01")
}

// frozen checks that nothing can be claimed or released and that all claims are listed.
func (s *study) frozen(holder, other author.Instance) {
	s.t.Helper()
	clear := func(err error) {
		s.t.Helper()
		if lockkeeper.CodeOf(err) != lockkeeper.CodeStore || !strings.Contains(err.Error(), s.path()) || !strings.Contains(err.Error(), fs.ErrPermission.Error()) ||
			!strings.Contains(err.Error(), "readable and writable") {
			s.t.Errorf("the error does not say what to do: %v", err)
		}
	}
	for _, name := range []string{"Chapter_01", "Chapter_02", "Chapter_05"} {
		a, err := s.Claim(s.t.Context(), s.want(other, name))
		if clear(err); err == nil {
			s.t.Errorf("the claim of %s returned %+v", name, a)
		}
	}
	_, err := s.Unclaim(s.t.Context(), holder, nil)
	clear(err)
	list, _, err := s.Claims(s.t.Context())
	if clear(err); len(list) != 2 {
		s.t.Errorf("held are %+v", list)
	}
	_, err = s.Clear(s.t.Context(), list, ada, true)
	clear(err)
	troubles := make(chan error, 10)
	w := s.Watch(s.t.Context(), func(n author.Note) { s.t.Errorf("told %+v", n) }, func(err error) { troubles <- err })
	clear(<-troubles)
	w.Close()
	if len(troubles) > 0 {
		s.t.Errorf("reported again: %v", <-troubles)
	}
}

// Without Lockkeeper claims, an unreadable file is not treated as missing, because it may
// contain foreign claims.
func TestUnreadableDirectoryIsNotEmpty(t *testing.T) {
	if !durabletest.Unprivileged(t) {
		return
	}
	s := newStudy(t, "")
	s.foreign(entry("Chapter_02", "CLI-9", time.Minute))
	dir := filepath.Dir(s.path())
	must(t, os.Chmod(dir, 0))
	t.Cleanup(func() { must(t, os.Chmod(dir, 0o755)) })
	if list, _, err := s.Claims(t.Context()); lockkeeper.CodeOf(err) != lockkeeper.CodeStore || len(list) != 0 {
		t.Errorf("shown as %v, %v", list, err)
	}
}

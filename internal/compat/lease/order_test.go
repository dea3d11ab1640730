package lease_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockkeeper"
	"lockkeeper/internal/compat/lease"
)

// shows: LE-38 LE-39 CF-5
func TestOrder(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) *lease.Lease {
		opt := lease.Defaults()
		opt.Owner = "tidy_up"
		return lease.New(filepath.Join(dir, name+".lock"), opt)
	}
	there := func(want ...string) {
		t.Helper()
		found, err := lease.List(dir, lease.Defaults())
		must(t, err)
		var got []string
		for _, info := range found {
			got = append(got, strings.TrimSuffix(filepath.Base(info.Path), ".lock"))
		}
		if !slices.Equal(got, want) {
			t.Errorf("there is %q instead of %q", got, want)
		}
	}
	paths := []string{"b/x.lock", "b/archive.lock", "a/x.lock", "b/queue.lock", "a/docs.lock", "a/tidy.lock", "a/archive.lock", "c/runs.lock"}
	lease.Sort(paths)
	if want := []string{"a/tidy.lock", "b/queue.lock", "c/runs.lock", "a/archive.lock", "b/archive.lock", "a/docs.lock", "a/x.lock", "b/x.lock"}; !slices.Equal(paths, want) {
		t.Errorf("sorted to %q", paths)
	}
	var s lease.Stack
	for _, name := range []string{"tidy", "queue", "archive", "other"} {
		must(t, s.Acquire(t.Context(), at(name), 0))
	}
	there("tidy", "queue", "archive", "other")
	must(t, s.Release(t.Context()))
	there("tidy", "queue", "archive")
	for _, name := range []string{"tidy", "queue", "archive"} {
		if err := s.Acquire(t.Context(), at(name), 0); lockkeeper.CodeOf(err) != lockkeeper.CodeRefused || !strings.Contains(err.Error(), "already held") {
			t.Errorf("%s: %v", name, err)
		}
	}
	must(t, s.Release(t.Context()))
	there("tidy", "queue")
	must(t, s.Close(t.Context()))
	there()
	must(t, s.Close(t.Context()))

	under := lease.Stack{Inherited: []string{filepath.Join(dir, "queue.lock")}}
	if err := under.Acquire(t.Context(), at("tidy"), 0); lockkeeper.CodeOf(err) != lockkeeper.CodeRefused || !strings.Contains(err.Error(), "tidy, queue, runs, archive, docs") {
		t.Errorf("under another one: %v", err)
	}
	must(t, under.Acquire(t.Context(), at("archive"), 0))
	must(t, under.Close(t.Context()))
}

// A file without a token is malformed, but its owner is still shown.
func TestOwnerWithoutToken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tidy.lock")
	for text, owner := range map[string]string{
		`{"owner": "nightly", "pid": 42, "created_at": "2026-01-03T12:00:00Z", "expires_at": "2026-01-03T12:30:00Z"}`: "nightly",
		`{"owner": "nightly", "pid": "42", "token": ""}`:                                                              "nightly",
		`{"owner": "nightly", "token": "x"}`:                                                                          "nightly",
		`{"owner": 7}`:                                                                                                "", `["nightly"]`: "", `nightly`: "",
	} {
		must(t, os.WriteFile(path, []byte(text), 0o644))
		info, err := lease.Inspect(path, lease.Defaults())
		must(t, err)
		if info.Owner != owner || info.State == lease.Held || info.Fact == "" {
			t.Errorf("%s: %+v", text, info)
		}
	}
}

// A missing directory has no lease files, and malformed files are listed.
func TestList(t *testing.T) {
	if list, err := lease.List(filepath.Join(t.TempDir(), "nowhere"), lease.Defaults()); len(list) != 0 || err != nil {
		t.Errorf("got %v, %v", list, err)
	}
	s := newScene(t)
	s.holds("tidy_up")
	dir := filepath.Dir(s.path)
	must(t, os.Mkdir(filepath.Join(dir, "archive.lock"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "queue.lock"), nil, 0o644))
	list, err := lease.List(dir, s.options(""))
	must(t, err)
	var states []lease.State
	for _, info := range list {
		states = append(states, info.State)
	}
	if want := []lease.State{lease.Held, lease.Unclear, lease.Refused}; !slices.Equal(states, want) {
		t.Errorf("states are %q", states)
	}
	info, err := lease.Inspect(filepath.Join(dir, "none", "x.lock"), s.options(""))
	if err != nil || info.State != lease.Free {
		t.Errorf("got %+v, %v", info, err)
	}
}

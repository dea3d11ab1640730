package toolcache

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// add fills a layer with one file of the cache at /c, as an overlay does.
func add(t *testing.T, s *Store, name, text string) error {
	t.Helper()
	l, err := s.Begin()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := l.Changes("/c")
	if err != nil {
		t.Fatal(err)
	}
	for _, made := range []string{"work/work", "upper/x"} {
		if err := os.MkdirAll(filepath.Join(dir, made), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "upper/x", name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = l.Keep(t.Context())
	return err
}

// content lists the files that a command would find, newest layer first.
func content(t *testing.T, s *Store) (names []string) {
	t.Helper()
	l, err := s.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, dir := range l.Below("/c") {
		entries, err := os.ReadDir(filepath.Join(dir, "x"))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
	}
	return names
}

// Layers are listed newest first. An empty or discarded layer is not kept, and a full store starts
// over.
func TestLayers(t *testing.T) {
	s := New(filepath.Join(t.TempDir(), "store"), 100)
	if got := content(t, s); got != nil {
		t.Errorf("a new store has %q", got)
	}
	for _, name := range []string{"a", "b", "c"} {
		if err := add(t, s, name, "1234567890"); err != nil {
			t.Fatal(err)
		}
	}
	if got := content(t, s); !slices.Equal(got, []string{"c", "b", "a"}) {
		t.Errorf("%q", got)
	}
	if err := add(t, s, "empty", ""); err != nil {
		t.Fatal(err)
	}
	l, err := s.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Discard(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := add(t, s, "large", strings.Repeat("x", 101)); !errors.Is(err, ErrLarge) {
		t.Errorf("%v", err)
	}
	if got := content(t, s); len(got) != 3 {
		t.Errorf("%q", got)
	}
	if err := add(t, s, "d", strings.Repeat("x", 30)); err != nil {
		t.Fatal(err)
	}
	if err := add(t, s, "e", "new"); err != nil { // more than half is in use
		t.Fatal(err)
	}
	if got := content(t, s); !slices.Equal(got, []string{"e"}) {
		t.Errorf("%q", got)
	}
	if size, err := s.Size(); err != nil || size != 3 {
		t.Errorf("%d, %v", size, err)
	}
	for range maxLayers {
		if err := add(t, s, "many", "x"); err != nil {
			t.Fatal(err)
		}
	}
	if got := content(t, s); len(got) != 1 {
		t.Errorf("%q", got)
	}
	info, err := os.Stat(s.dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	left, err := filepath.Glob(filepath.Join(s.dir, filling+"*"))
	if err != nil || len(left) != 0 {
		t.Errorf("%q, %v", left, err)
	}
}

// A layer that a command uses stays until the command ends.
func TestUsedLayersStay(t *testing.T) {
	s := New(t.TempDir(), 10)
	if err := add(t, s, "a", "1234567"); err != nil {
		t.Fatal(err)
	}
	used, err := s.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := add(t, s, "b", "1234567"); err != nil {
		t.Fatal(err)
	}
	for _, dir := range used.Below("/c") {
		if text, err := os.ReadFile(filepath.Join(dir, "x", "a")); err != nil || string(text) != "1234567" {
			t.Errorf("%q, %v", text, err)
		}
	}
	if err := used.Close(); err != nil {
		t.Fatal(err)
	}
	if err := add(t, s, "c", "1234567"); err != nil {
		t.Fatal(err)
	}
	if got := content(t, s); !slices.Equal(got, []string{"c"}) {
		t.Errorf("%q", got)
	}
}

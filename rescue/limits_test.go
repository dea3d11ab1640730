package rescue

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"lockkeeper/internal/machine/machinetest"
)

// A file larger than the limit is refused before anything is written, even if it is sparse.
// Content of unknown size is refused as soon as it exceeds the limit.
func TestLimitOfAnEntry(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rescue")
	s := Open(dir, Limits{Entry: 1000})
	sparse := must[*os.File](t)(os.Create(filepath.Join(t.TempDir(), "sparse")))
	defer sparse.Close()
	if err := sparse.Truncate(1 << 40); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]io.Reader{"sparse": sparse, "endless": readerFunc(func(b []byte) (int, error) { return len(b), nil })} {
		var limit *LimitError
		if e, err := s.Put(t.Context(), Entry{Kind: Gap, Path: name}, content); !errors.As(err, &limit) || e.ID != "" {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
		if left := names(t, dir); len(left) != 0 {
			t.Errorf("%s left %v", name, left)
		}
	}
	keep(t, s, strings.Repeat("x", 1000), noon)

	e := must[Entry](t)(s.PutOrNote(t.Context(), Entry{Kind: Gap, Path: "big", Reason: "coverage"}, sparse))
	if e.Kind != Noted || !strings.Contains(e.Reason, "coverage; its content is not kept") || !strings.Contains(contentOf(t, s, e.ID), "gate.keep_file_mb") {
		t.Errorf("%+v", e)
	}
	if e := must[Entry](t)(s.PutOrNote(t.Context(), Entry{Kind: Gap, Path: "small"}, strings.NewReader("small"))); e.Kind != Gap || contentOf(t, s, e.ID) != "small" {
		t.Errorf("%+v", e)
	}
}

// All contents together have a limit. Dropping an entry makes room.
func TestLimitOfAShelf(t *testing.T) {
	s := Open(filepath.Join(t.TempDir(), "rescue"), Limits{Total: 10})
	first := keep(t, s, "sixsix", noon)
	var limit *LimitError
	if _, err := s.Put(t.Context(), Entry{Path: "a"}, strings.NewReader("fives")); !errors.As(err, &limit) || !strings.Contains(err.Error(), "rescue drop") {
		t.Fatal(err)
	}
	if e := must[Entry](t)(s.PutOrNote(t.Context(), Entry{Path: "a"}, strings.NewReader("fives"))); e.Kind != Noted {
		t.Errorf("%+v", e)
	}
	for _, e := range list(t, s) {
		if e.ID == first.ID || e.Kind == Noted {
			if err := s.Drop(e.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	keep(t, s, "fives", noon)
}

// Large content never takes more than half of the free space on the disk.
func TestRoomOnTheDisk(t *testing.T) {
	dir := t.TempDir()
	machinetest.Mount(t, "tmpfs", dir, "tmpfs", 0, "size=8m")
	s := Open(filepath.Join(dir, "rescue"), Limits{})
	_, err := s.Put(t.Context(), Entry{Path: "five"}, strings.NewReader(strings.Repeat("x", 5<<20)))
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%v", err)
	}
	must[Entry](t)(s.Put(t.Context(), Entry{Path: "three"}, strings.NewReader(strings.Repeat("x", 3<<20))))
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

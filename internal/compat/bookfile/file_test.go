package bookfile_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/internal/compat/bookfile"
)

func newFile(t *testing.T) *bookfile.File {
	t.Helper()
	return bookfile.Open(t.TempDir(), filepath.Join(".locks", "locks.json"))
}

// write writes the file as a foreign tool would.
func write(t *testing.T, f *bookfile.File, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(f.Path()), 0o755))
	must(t, os.WriteFile(f.Path(), []byte(text), 0o644))
}

func content(t *testing.T, f *bookfile.File) string {
	t.Helper()
	text, err := os.ReadFile(f.Path())
	must(t, err)
	return string(text)
}

// names lists the other files in the directory.
func names(t *testing.T, f *bookfile.File) (list []string) {
	t.Helper()
	found, err := os.ReadDir(filepath.Dir(f.Path()))
	must(t, err)
	for _, e := range found {
		if e.Name() != "locks.json" && e.Name() != "locks.json.guard" {
			list = append(list, e.Name())
		}
	}
	return list
}

// shows: LM-4 LM-13
func TestFileIsMadeByTheFirstChange(t *testing.T) {
	f := newFile(t)
	must(t, f.Update(t.Context(), func(r bookfile.Reading) ([]bookfile.Entry, error) {
		if r.Known || r.Corrupt != nil || r.Entries != nil {
			t.Errorf("a missing file was read as %+v", r)
		}
		return nil, nil
	}))
	if got := content(t, f); got != string(bookfile.Encode(nil)) {
		t.Errorf("it holds %s", got)
	}
	must(t, os.Chmod(f.Path(), 0o640))
	must(t, f.Update(t.Context(), func(r bookfile.Reading) ([]bookfile.Entry, error) {
		if !r.Known {
			t.Error("an empty list does not count as known")
		}
		return example, nil
	}))
	if got := content(t, f); got != documented {
		t.Errorf("it holds %s", got)
	}
	if info, err := os.Stat(f.Path()); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("its permissions became %v, %v", info.Mode(), err)
	}
	if left := names(t, f); left != nil {
		t.Errorf("left beside it: %v", left)
	}
}

// shows: LM-39 CF-38
func TestCorruptFileIsKeptAndSaved(t *testing.T) {
	f := newFile(t)
	broken := documented[:len(documented)-5]
	write(t, f, broken)
	must(t, os.Chtimes(f.Path(), time.Time{}, time.Now().Add(-time.Minute)))
	must(t, f.Update(t.Context(), func(r bookfile.Reading) ([]bookfile.Entry, error) {
		if r.Known || r.Corrupt == nil || r.Corrupt.Saved != 2 || !slices.Equal(r.Entries, example) {
			t.Fatalf("read %+v", r)
		}
		if kept, err := os.ReadFile(r.Corrupt.Backup); err != nil || string(kept) != broken {
			t.Errorf("kept %q, %v", kept, err)
		}
		if !strings.HasPrefix(filepath.Base(r.Corrupt.Backup), "locks.json.corrupt.") {
			t.Errorf("kept as %s", r.Corrupt.Backup)
		}
		return r.Entries, nil
	}))
	if got := content(t, f); got != documented {
		t.Errorf("it holds %s", got)
	}
}

// A document of another kind, at a mistyped path, is left unchanged.
func TestOtherDocumentIsLeftAlone(t *testing.T) {
	for _, text := range []string{`{"name": "book", "version": "1.0"}`, `[1, 2]`} {
		f := newFile(t)
		write(t, f, text)
		must(t, os.Chtimes(f.Path(), time.Time{}, time.Now().Add(-time.Minute)))
		err := f.Update(t.Context(), func(r bookfile.Reading) ([]bookfile.Entry, error) {
			t.Errorf("%s was read as %+v", text, r)
			return r.Entries, nil
		})
		if lockkeeper.CodeOf(err) != lockkeeper.CodeStore || !strings.Contains(err.Error(), "not a locks file") {
			t.Errorf("%s: %v", text, err)
		}
		if got := content(t, f); got != text || names(t, f) != nil {
			t.Errorf("it holds %s, left beside it: %v", got, names(t, f))
		}
	}
}

// A file that a writer truncates and then writes is neither corrupt nor empty.
func TestWriterInTheMiddleIsGivenTime(t *testing.T) {
	f := newFile(t)
	write(t, f, documented[:50])
	var writing sync.WaitGroup
	writing.Go(func() {
		time.Sleep(100 * time.Millisecond) // a slow writer
		if err := os.WriteFile(f.Path(), []byte(documented), 0o644); err != nil {
			t.Error(err)
		}
	})
	must(t, f.Update(t.Context(), func(r bookfile.Reading) ([]bookfile.Entry, error) {
		if !r.Known || !slices.Equal(r.Entries, example) {
			t.Errorf("read %+v", r)
		}
		return r.Entries, nil
	}))
	writing.Wait()
	if left := names(t, f); left != nil {
		t.Errorf("left beside it: %v", left)
	}
}

// Changes that a foreign tool makes between our read and our write are not lost.
//
// shows: LM-42 LM-51 CF-39
func TestForeignWriteInBetween(t *testing.T) {
	added := entry("Chapter_09", "2025-11-22T10:33:00Z", "CLI-9")
	for name, foreign := range map[string]func(t *testing.T, f *bookfile.File, text []byte){
		"in place": func(t *testing.T, f *bookfile.File, text []byte) { must(t, os.WriteFile(f.Path(), text, 0o644)) },
		"by a rename": func(t *testing.T, f *bookfile.File, text []byte) {
			must(t, os.WriteFile(f.Path()+".tmp", text, 0o644))
			must(t, os.Rename(f.Path()+".tmp", f.Path()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFile(t)
			write(t, f, documented)
			calls := 0
			must(t, f.Update(t.Context(), func(r bookfile.Reading) ([]bookfile.Entry, error) {
				if calls++; calls == 1 {
					foreign(t, f, bookfile.Encode([]bookfile.Entry{example[1], added})) // one removed, one added
				}
				return append(slices.Clone(r.Entries), mine.Entry), nil
			}))
			got, err := bookfile.Decode([]byte(content(t, f)))
			must(t, err)
			if calls != 2 || slices.Contains(got, example[0]) || !slices.Contains(got, added) || !slices.Contains(got, mine.Entry) || !slices.Contains(got, example[1]) {
				t.Errorf("after %d calls it holds %v", calls, got)
			}
			if left := names(t, f); left != nil {
				t.Errorf("left beside it: %v", left)
			}
		})
	}
}

// A foreign tool that removes the file, or never finishes it, releases nothing.
func TestForeignRemovalInBetween(t *testing.T) {
	f := newFile(t)
	write(t, f, documented)
	calls := 0
	must(t, f.Update(t.Context(), func(r bookfile.Reading) ([]bookfile.Entry, error) {
		if calls++; calls == 1 {
			must(t, os.Remove(f.Path()))
		} else if r.Known {
			t.Error("a removed file counts as known")
		}
		return []bookfile.Entry{mine.Entry}, nil
	}))
	if calls != 2 {
		t.Errorf("it took %d calls", calls)
	}
	calls = 0
	must(t, f.Update(t.Context(), func(r bookfile.Reading) ([]bookfile.Entry, error) {
		if calls++; calls == 1 {
			must(t, os.WriteFile(f.Path(), []byte(documented[:200]), 0o644))
			must(t, os.Chtimes(f.Path(), time.Time{}, time.Now().Add(-time.Minute)))
			return nil, nil
		}
		if r.Corrupt == nil || !slices.Contains(r.Entries, example[0]) {
			t.Errorf("read %+v", r)
		}
		return r.Entries, nil
	}))
	if calls != 2 || len(names(t, f)) != 1 {
		t.Errorf("after %d calls there are %v", calls, names(t, f))
	}
}

func TestRefusedChangeChangesNothing(t *testing.T) {
	f := newFile(t)
	write(t, f, documented)
	refusal := errors.New("no")
	if err := f.Update(t.Context(), func(bookfile.Reading) ([]bookfile.Entry, error) { return nil, refusal }); !errors.Is(err, refusal) {
		t.Error(err)
	}
	if got := content(t, f); got != documented {
		t.Errorf("it holds %s", got)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	must(t, f.Update(t.Context(), func(bookfile.Reading) ([]bookfile.Entry, error) { // the guard is held here
		if err := f.Update(ended, func(bookfile.Reading) ([]bookfile.Entry, error) { return nil, nil }); !errors.Is(err, context.Canceled) {
			t.Errorf("waiting ended with %v", err)
		}
		return example, nil
	}))
}

// shows: CF-39
func TestManyAtOnceLoseNothing(t *testing.T) {
	f := newFile(t)
	const writers, times = 8, 20
	var working sync.WaitGroup
	for w := range writers {
		working.Go(func() {
			for i := range times {
				err := f.Update(context.Background(), func(r bookfile.Reading) ([]bookfile.Entry, error) {
					return append(slices.Clone(r.Entries), entry(fmt.Sprint(w, "/", i), "2025-11-22T10:30:00Z", "CLI-1")), nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	var reading sync.WaitGroup
	reading.Go(func() {
		for {
			if text, err := os.ReadFile(f.Path()); err == nil && !json.Valid(text) {
				t.Errorf("a reader found %q", text)
			}
			select {
			case <-done:
				return
			default:
			}
		}
	})
	working.Wait()
	close(done)
	reading.Wait()
	got, err := bookfile.Decode([]byte(content(t, f)))
	if err != nil || len(got) != writers*times {
		t.Errorf("%d of %d entries are left: %v", len(got), writers*times, err)
	}
}

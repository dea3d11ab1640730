package durable_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"lockkeeper"
	"lockkeeper/durable"
	"lockkeeper/durable/durabletest"
)

var (
	oldData = bytes.Repeat([]byte("old content\n"), 1000)
	newData = bytes.Repeat([]byte("the new content\n"), 900)
)

// seeded creates a file with the old content in a new directory.
func seeded(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "state.json")
	if err := os.WriteFile(path, oldData, 0o640); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func leftovers(t *testing.T, path string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != filepath.Base(path) {
			names = append(names, e.Name())
		}
	}
	return names
}

// shows: LE-26
func TestWriteFile(t *testing.T) {
	path := seeded(t)
	if err := durable.WriteFile(t.Context(), path, newData, 0o600); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(read(t, path), newData) {
		t.Error("content is not the new one")
	}
	fresh := filepath.Join(filepath.Dir(path), strings.Repeat("n", 255))
	if err := durable.WriteFile(t.Context(), fresh, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for p, want := range map[string]fs.FileMode{path: 0o640, fresh: 0o666} {
		info, err := os.Stat(p)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != want {
			t.Errorf("%.20s: mode %v, want %v", filepath.Base(p), info.Mode(), want)
		}
	}
	if err := os.Remove(fresh); err != nil {
		t.Fatal(err)
	}
	if left := leftovers(t, path); left != nil {
		t.Errorf("left behind: %v", left)
	}
}

func TestOrderOfOperations(t *testing.T) {
	faults := new(durabletest.Faults)
	if err := (durable.Writer{Ops: faults}).WriteFile(t.Context(), seeded(t), newData, 0o600); err != nil {
		t.Fatal(err)
	}
	want := []durabletest.Op{durabletest.Lstat, durabletest.CreateTemp, durabletest.Write, durabletest.Chmod,
		durabletest.Sync, durabletest.Close, durabletest.Rename, durabletest.SyncDir}
	if got := faults.Trace(); !slices.Equal(got, want) {
		t.Errorf("operations %v, want %v", got, want)
	}
}

// Every operation fails once with each permanent error of a disk.
//
// shows: LE-26 LE-29
func TestEveryFault(t *testing.T) {
	const rename, syncDir = 6, 7
	for k := range 8 {
		for _, fault := range []error{syscall.ENOSPC, syscall.EIO, syscall.EACCES} {
			t.Run(fmt.Sprint(k, fault), func(t *testing.T) {
				path, faults := seeded(t), new(durabletest.Faults)
				synctest.Test(t, func(t *testing.T) {
					if k == rename {
						faults.FailNext(durabletest.Rename, 4, fault) // outlasting the retries
					} else {
						faults.FailAt(k, fault)
					}
					err := durable.Writer{Ops: faults}.WriteFile(t.Context(), path, newData, 0o600)
					var failed *durable.Error
					if !errors.As(err, &failed) || !errors.Is(err, fault) {
						t.Fatalf("error %v, want a durable.Error for %v", err, fault)
					}
					want := oldData
					if failed.Replaced {
						want = newData
					}
					if !bytes.Equal(read(t, path), want) {
						t.Errorf("content does not match Replaced = %v", failed.Replaced)
					}
					if failed.Replaced != (k == syncDir) {
						t.Errorf("operation %d: Replaced = %v", k, failed.Replaced)
					}
					if left := leftovers(t, path); left != nil {
						t.Errorf("left behind: %v", left)
					}
				})
			})
		}
	}
}

// shows: LE-26
func TestEveryCrash(t *testing.T) {
	for _, exists := range []bool{true, false} {
		for k := range 9 {
			t.Run(fmt.Sprint(exists, k), func(t *testing.T) {
				path, faults := seeded(t), new(durabletest.Faults)
				if !exists {
					if err := os.Remove(path); err != nil {
						t.Fatal(err)
					}
				}
				faults.CrashAt(k)
				var err error
				synctest.Test(t, func(t *testing.T) {
					err = durable.Writer{Ops: faults}.WriteFile(t.Context(), path, newData, 0o600)
				})
				if (err == nil) != (k == 8) {
					t.Fatalf("crash at %d: error %v", k, err)
				}
				got, readErr := os.ReadFile(path)
				switch {
				case k > 6 && !bytes.Equal(got, newData):
					t.Error("renamed, but the content is not the new one")
				case k <= 6 && exists && !bytes.Equal(got, oldData):
					t.Error("not renamed, but the content is not the old one")
				case k <= 6 && !exists && !errors.Is(readErr, fs.ErrNotExist):
					t.Errorf("not renamed, but there is a file: %v", readErr)
				}
				for _, name := range leftovers(t, path) {
					if !strings.HasPrefix(name, durable.TempPrefix) {
						t.Errorf("left behind: %s", name)
					}
				}
				// Leftovers of the dead process do not affect the next one.
				if err := durable.WriteFile(t.Context(), path, newData, 0o600); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(read(t, path), newData) {
					t.Error("content after the crash is not the new one")
				}
			})
		}
	}
}

// shows: LE-29 CF-42
func TestReplaceIsRetried(t *testing.T) {
	waits := []time.Duration{0, 100 * time.Millisecond, 300 * time.Millisecond, 600 * time.Millisecond, 600 * time.Millisecond}
	for failures, wait := range waits {
		t.Run(fmt.Sprint(failures), func(t *testing.T) {
			path, faults := seeded(t), new(durabletest.Faults)
			faults.FailNext(durabletest.Rename, failures, syscall.EBUSY)
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				err := durable.Writer{Ops: faults}.WriteFile(t.Context(), path, newData, 0o600)
				if took := time.Since(start); took != wait {
					t.Errorf("waited %v, want %v", took, wait)
				}
				if failures <= 3 && err != nil || failures > 3 && !errors.Is(err, syscall.EBUSY) {
					t.Errorf("error %v", err)
				}
			})
			want := newData
			if failures > 3 {
				want = oldData
			}
			if !bytes.Equal(read(t, path), want) {
				t.Error("wrong content")
			}
			if left := leftovers(t, path); left != nil {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestSyncIsNotRetried(t *testing.T) {
	path, faults := seeded(t), new(durabletest.Faults)
	faults.FailNext(durabletest.Sync, 1, syscall.EIO)
	err := durable.Writer{Ops: faults}.WriteFile(t.Context(), path, newData, 0o600)
	if !errors.Is(err, syscall.EIO) {
		t.Fatalf("error %v, want EIO", err)
	}
	trace := faults.Trace()
	if tail := trace[4:]; !slices.Equal(tail, []durabletest.Op{durabletest.Sync, durabletest.Close, durabletest.Remove}) {
		t.Errorf("from the failed fsync on: %v", tail)
	}
}

func TestCanceled(t *testing.T) {
	path, faults := seeded(t), new(durabletest.Faults)
	faults.FailNext(durabletest.Rename, 4, syscall.EBUSY)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
		defer cancel()
		err := durable.Writer{Ops: faults}.WriteFile(ctx, path, newData, 0o600)
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, syscall.EBUSY) {
			t.Errorf("error %v, want both the deadline and what it waited for", err)
		}
	})
	if !bytes.Equal(read(t, path), oldData) || leftovers(t, path) != nil {
		t.Error("a canceled write changed something")
	}
}

func TestRefusedTargets(t *testing.T) {
	path := seeded(t)
	dir := filepath.Dir(path)
	link, fifo := filepath.Join(dir, "link"), filepath.Join(dir, "fifo")
	if err := errors.Join(os.Symlink("state.json", link), syscall.Mkfifo(fifo, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{link, fifo, dir} {
		var input *lockkeeper.InputError
		if err := durable.WriteFile(t.Context(), p, newData, 0o600); !errors.As(err, &input) {
			t.Errorf("%s: error %v, want an InputError", filepath.Base(p), err)
		}
	}
	if !bytes.Equal(read(t, path), oldData) {
		t.Error("the file behind the link changed")
	}
	if left := leftovers(t, path); !slices.Equal(left, []string{"fifo", "link"}) {
		t.Errorf("left behind: %v", left)
	}
}

// shows: LE-26
func TestReadersNeverSeeAPart(t *testing.T) {
	path := seeded(t)
	var stop atomic.Bool
	var wg sync.WaitGroup
	var seen [2]atomic.Int64
	for range 4 {
		wg.Go(func() {
			for !stop.Load() {
				data, err := os.ReadFile(path)
				switch {
				case err == nil && bytes.Equal(data, oldData):
					seen[0].Add(1)
				case err == nil && bytes.Equal(data, newData):
					seen[1].Add(1)
				default:
					t.Errorf("read %d bytes, error %v", len(data), err)
					return
				}
			}
		})
	}
	for i := range 100 {
		data := newData
		if i%2 == 1 {
			data = oldData
		}
		if err := durable.WriteFile(t.Context(), path, data, 0o600); err != nil {
			t.Error(err)
			break
		}
	}
	stop.Store(true)
	wg.Wait()
	if seen[0].Load() == 0 || seen[1].Load() == 0 {
		t.Errorf("readers saw the contents %d and %d times, want both", seen[0].Load(), seen[1].Load())
	}
}

func TestTwoWriters(t *testing.T) {
	path := seeded(t)
	var wg sync.WaitGroup
	for _, data := range [][]byte{oldData, newData} {
		wg.Go(func() {
			for range 20 {
				if err := durable.WriteFile(t.Context(), path, data, 0o600); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := read(t, path); !bytes.Equal(got, oldData) && !bytes.Equal(got, newData) {
		t.Error("content is of neither writer")
	}
	if left := leftovers(t, path); left != nil {
		t.Errorf("left behind: %v", left)
	}
}

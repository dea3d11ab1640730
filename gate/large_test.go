package gate_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"crypto/sha256"

	"lockkeeper/gate"
	"lockkeeper/store/storetest"
)

// The gate does not hold a large file in memory.
func TestLargeFile(t *testing.T) {
	inMemory(t)
	const size = 100 << 20
	source := filepath.Join(t.TempDir(), "source")
	must(t, os.WriteFile(source, []byte("begins like this"), 0o600), os.Truncate(source, size))
	w := newWorld(t, map[string]string{"test/large": "small"}, gate.Options{})
	g := w.hold("otter", "test/large")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	l := w.commit(g, gate.Change{Path: "test/large", Body: func() (io.ReadCloser, error) { return os.Open(source) }})
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 4<<20 {
		t.Errorf("a file of %d MB took %d KB of memory", size>>20, used>>10)
	}
	f, err := os.Open(w.in("test/large"))
	must(t, err)
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	must(t, err)
	if sum := l.Changes[0].New.Sum; n != size || string(h.Sum(nil)) != string(sum[:]) {
		t.Errorf("%d bytes with another sum than was landed", n)
	}
	w.releases(g)
}

// As many files as a large refactoring touches land as one unit.
func TestManyFiles(t *testing.T) {
	if storetest.Torture() == 1 {
		inMemory(t)
	}
	const many = 10_000
	w := newWorld(t, nil, gate.Options{})
	path := func(n int) string { return fmt.Sprintf("test/%02d/%03d.rb", n%50, n/50) }
	files := map[string]string{}
	var paths []string
	var changes []gate.Change
	for n := range many {
		paths = append(paths, path(n))
		files[path(n)] = fmt.Sprint("old ", n)
		if n%2 == 0 { // the other files are new
			w.plant(map[string]string{path(n): files[path(n)]})
		}
		changes = append(changes, gate.Put(path(n), []byte(fmt.Sprint("new ", n))))
	}
	g := w.hold("otter", paths...)
	began := time.Now()
	l := w.commit(g, changes...)
	t.Logf("%d files in one commit: %s", many, time.Since(began).Round(time.Millisecond))
	for n := range many {
		files[path(n)] = fmt.Sprint("new ", n)
	}
	w.want(files)
	w.noStages()
	began = time.Now()
	if _, err := w.gate.Undo(t.Context(), &g.Grant, l.Seq); err != nil {
		t.Fatal(err)
	}
	t.Logf("and back: %s", time.Since(began).Round(time.Millisecond))
	for n := range many {
		if files[path(n)] = fmt.Sprint("old ", n); n%2 != 0 {
			delete(files, path(n))
		}
	}
	w.want(files)
	w.releases(g)
}

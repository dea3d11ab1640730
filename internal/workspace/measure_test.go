//go:build unix

package workspace

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// largeTree makes a tree of so many files, twenty to a directory.
func largeTree(t testing.TB, files, size int) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "shared")
	random := rand.New(rand.NewPCG(1, 2))
	content := make([]byte, size)
	for i := range files {
		dir := filepath.Join(root, fmt.Sprint("d", i/400), fmt.Sprint("e", i/20))
		if i%20 == 0 {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		for k := range content {
			content[k] = byte(random.Uint32())
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("f", i)), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// Making a workspace costs little more than copying it with cp, less once the
// hashes are known, and comparing it with what was copied next to nothing. cp and
// Make are measured in turn, because a busy machine is busy for both.
func TestCost(t *testing.T) {
	if os.Getenv("LOCKKEEPER_TORTURE") == "" {
		t.Skip("LOCKKEEPER_TORTURE is not set")
	}
	root := largeTree(t, 10_000, 20<<10)
	dir := t.TempDir()
	timed := func(do func() error) float64 {
		start := time.Now()
		must(t, do())
		return time.Since(start).Seconds()
	}
	copyAll := func(to string) error { return exec.Command("cp", "-a", root, to).Run() }
	makeWith := func(sums *Sums) float64 {
		var w *Workspace
		took := timed(func() (err error) {
			w, err = Make(t.Context(), Options{Root: root, Dir: dir, Sums: sums})
			return err
		})
		must(t, w.Close(t.Context(), false))
		return took
	}
	known := quickSums()
	makeWith(known)
	var plain, reading, knowing []float64
	for range 7 {
		to := filepath.Join(dir, "cp")
		cp := timed(func() error { return copyAll(to) })
		must(t, os.RemoveAll(to))
		plain, reading, knowing = append(plain, cp), append(reading, makeWith(nil)/cp), append(knowing, makeWith(known)/cp)
	}
	for _, figures := range [][]float64{plain, reading, knowing} {
		slices.Sort(figures)
	}
	t.Logf("10,000 files, 200 MB: cp -a %.2f to %.2f s; of that Make takes %.2f (%.2f to %.2f), and with known hashes %.2f (%.2f to %.2f)",
		plain[0], plain[6], reading[3], reading[0], reading[6], knowing[3], knowing[0], knowing[6])
	if reading[3] > 1.5 {
		t.Errorf("Make takes %.2f times as long as cp -a", reading[3])
	}
	measureSixteen(t, root, dir, copyAll, known)
	measureChanges(t, dir)
}

func measureSixteen(t *testing.T, root, dir string, copyAll func(to string) error, known *Sums) {
	const agents = 16
	atOnce := func(do func(i int) error) time.Duration {
		start := time.Now()
		var all sync.WaitGroup
		for i := range agents {
			all.Go(func() {
				if err := do(i); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		return time.Since(start)
	}
	cp := atOnce(func(i int) error { return copyAll(filepath.Join(dir, fmt.Sprint("cp", i))) })
	for i := range agents {
		if err := os.RemoveAll(filepath.Join(dir, fmt.Sprint("cp", i))); err != nil {
			t.Fatal(err)
		}
	}
	made := make([]*Workspace, agents)
	makeAll := func(sums *Sums) float64 {
		took := atOnce(func(i int) (err error) {
			made[i], err = Make(t.Context(), Options{Root: root, Dir: dir, Sums: sums})
			return err
		})
		atOnce(func(i int) error { return made[i].Close(t.Context(), false) })
		return took.Seconds()
	}
	t.Logf("sixteen at once: cp -a %.1f s, Make %.1f s, with known hashes %.1f s", cp.Seconds(), makeAll(nil), makeAll(known))
}

func measureChanges(t *testing.T, dir string) {
	w := open(t, Options{Root: largeTree(t, 20_000, 100), Dir: dir})
	wantChanges(t, w) // which reads what was copied last
	best := time.Hour
	for range 20 {
		start := time.Now()
		wantChanges(t, w)
		best = min(best, time.Since(start))
	}
	t.Logf("comparing 20,000 unchanged files: %.0f ms at best", float64(best.Microseconds())/1000)
	if best > 300*time.Millisecond {
		t.Errorf("comparing 20,000 files takes %s", best)
	}
}

//go:build unix

package workspace

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
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

// Comparing a workspace with what was copied costs next to nothing. What making one
// costs is measured by the bench, against cp.
func TestCostOfComparing(t *testing.T) {
	if os.Getenv("LOCKKEEPER_TORTURE") == "" {
		t.Skip("LOCKKEEPER_TORTURE is not set")
	}
	w := open(t, Options{Root: largeTree(t, 20_000, 100)})
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

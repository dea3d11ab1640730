package git

import (
	"os"
	"path/filepath"
	"testing"
)

// A git may read the index before a commit of Lockkeeper and write it afterwards. RepairIndex
// keeps the commit from being reverted. Changes that a person stages stay.
func TestRepairIndex(t *testing.T) {
	root := newTree(t, map[string]string{"changed": "1", "gone": "1", "restaged": "1", "other": "1"})
	plant(t, root, map[string]string{"changed": "2", "restaged": "2", "new": "1", "announced": "", "announced2": "1", "other": "2"})
	must(t, os.Remove(filepath.Join(root, "gone")))
	person(t, root, "add", "other")
	person(t, root, "add", "--intent-to-add", "announced", "announced2")
	index := filepath.Join(root, ".git/index")
	stale, err := os.ReadFile(index)
	must(t, err)
	person(t, root, "reset", "-q", "announced", "announced2") // git learns of them only after the commit has read the index
	r := open(t, root)
	_, err = r.Commit(t.Context(), Commit{Paths: []string{"announced", "announced2", "changed", "gone", "new", "restaged"}, Subject: "ours"})
	must(t, err)
	const want = "M  other\n"
	equal(t, "status after the commit", status(t, root), want)

	must(t, os.WriteFile(index, stale, 0o644))
	if status(t, root) == want {
		t.Fatal("the old index makes no difference")
	}
	plant(t, root, map[string]string{"restaged": "3"})
	person(t, root, "add", "restaged")
	must(t, r.RepairIndex(t.Context()))
	equal(t, "status after the repair", status(t, root), want+"M  restaged\n")
}

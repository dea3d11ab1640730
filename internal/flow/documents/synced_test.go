package documents

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"lockkeeper/durable"
)

// A watched records which directories are synced.
type watched struct {
	rooted
	dirs *[]string
}

// SyncDir implements durable.Ops.
func (w watched) SyncDir(dir string) error {
	*w.dirs = append(*w.dirs, filepath.Base(dir))
	return w.rooted.SyncDir(dir)
}

// Every name on the way to a file is synced before the file counts as written. Each writer syncs
// it once, because another writer may have died before its sync. It is synced again if the
// directory was replaced.
//
// shows: PL-85
func TestDirectoriesAreSyncedOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "side")
	var dirs []string
	open := func() *Store {
		s := Open(dir)
		s.ops = func(root *os.Root) durable.Ops { return watched{rooted{root: root}, &dirs} }
		return s
	}
	s := open()
	for i, step := range []struct {
		before func()
		want   []string
	}{
		{func() {}, []string{"side", "posts", "batches", "b"}},
		{func() {}, []string{"b"}},
		{func() { s = open() }, []string{"side", "posts", "batches", "b"}},
		{func() { // the same directory, moved into another one
			posts := filepath.Join(dir, "posts")
			must(t, os.Rename(posts, posts+".away"))
			must(t, os.Mkdir(posts, 0o755))
			must(t, os.Rename(filepath.Join(posts+".away", "batches"), filepath.Join(posts, "batches")))
		}, []string{"side", "posts", "batches", "b"}},
		{func() { // a directory that another process created
			b := filepath.Join(dir, "posts", "batches", "b")
			must(t, os.Rename(b, b+".away"))
			must(t, os.Mkdir(b, 0o755))
		}, []string{"batches", "b"}},
	} {
		step.before()
		dirs = nil
		_, err := s.Unit("posts").Batch("b").Write(t.Context(), "apply.json", result{Count: i}, About{})
		must(t, err)
		if !slices.Equal(dirs, step.want) {
			t.Errorf("write %d synced %v, want %v", i, dirs, step.want)
		}
	}
}

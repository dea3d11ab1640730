package snapshot

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A tree is a directory with files and a store.
type tree struct {
	t     *testing.T
	root  string
	store *Store
}

func newTree(t *testing.T) *tree {
	t.Helper()
	root := t.TempDir()
	return &tree{t: t, root: root, store: Open(root, filepath.Join(root, ".lockkeeper", "snapshots"))}
}

func (x *tree) write(name, text string) {
	x.t.Helper()
	file := filepath.Join(x.root, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		x.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o640); err != nil {
		x.t.Fatal(err)
	}
}

// settle waits until the clock that stamps files is past the time of a file.
func (x *tree) settle(name string) {
	x.t.Helper()
	for {
		f, _, err := stat(filepath.Join(x.root, name))
		now, failed := clock()
		if err != nil || failed != nil {
			x.t.Fatal(err, failed)
		}
		if f.Ctime < now {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func (x *tree) take(l Limits, names ...string) (*Snapshot, []Miss) {
	x.t.Helper()
	var list []Candidate
	for _, n := range names {
		list = append(list, Candidate{Path: n})
	}
	snap, missed, err := x.store.Take(x.t.Context(), Snapshot{Holder: "otter", Command: "make"}, list, l, func(string, State, int64) bool { return false })
	if err != nil {
		x.t.Fatal(err)
	}
	return snap, missed
}

func (x *tree) changed(snap *Snapshot) (names []string) {
	x.t.Helper()
	list, err := x.store.Changed(x.t.Context(), snap)
	if err != nil {
		x.t.Fatal(err)
	}
	for _, c := range list {
		did := "changed"
		if c.Gone {
			did = "gone"
		}
		content, err := x.store.Content(c.File)
		if err != nil {
			x.t.Fatal(err)
		}
		names = append(names, fmt.Sprintf("%s %s %q", c.Path, did, content))
	}
	return names
}

func (x *tree) copies() int {
	x.t.Helper()
	list, err := os.ReadDir(x.store.copies())
	if err != nil {
		x.t.Fatal(err)
	}
	return len(list)
}

// The copy keeps the content if the file is removed, truncated in place, replaced, or turned into
// a directory or a link. A file that only grew is not lost.
func TestChanged(t *testing.T) {
	x := newTree(t)
	names := []string{"a", "b", "c", "d", "dir/e", "log", "same", "empty"}
	for _, n := range names {
		x.write(n, n+" before\n")
	}
	x.write("empty", "")
	for _, settled := range []bool{false, true} {
		if settled {
			for _, n := range names {
				x.write(n, n+" before\n")
				x.settle(n)
			}
		}
		snap, missed := x.take(DefaultLimits(), names...)
		if len(missed) > 0 {
			t.Errorf("missed %v", missed)
		}
		x.write("b", "b") // in place
		x.write("new", "c after!\n")
		x.write("log", "log before\nand more\n")
		at := func(name string) string { return filepath.Join(x.root, name) }
		for _, err := range []error{os.Remove(at("a")), os.Rename(at("new"), at("c")), os.Remove(at("d")), os.Symlink("b", at("d")), os.RemoveAll(at("dir"))} {
			if err != nil {
				t.Fatal(err)
			}
		}
		want := []string{`a gone "a before\n"`, `b changed "b before\n"`, `c changed "c before\n"`, `d gone "d before\n"`, `dir/e gone "dir/e before\n"`}
		got := x.changed(snap)
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("settled %v: %q, want %q", settled, got, want)
		}
		if err := os.Remove(at("d")); err != nil {
			t.Fatal(err)
		}
		if err := x.store.Close(snap); err != nil {
			t.Fatal(err)
		}
	}
}

// A change that keeps the size within one clock tick is detected by the content.
func TestSameStampAnotherContent(t *testing.T) {
	x := newTree(t)
	for i := range 200 {
		x.write("a", fmt.Sprintf("before %4d", i))
		snap, _ := x.take(DefaultLimits(), "a")
		x.write("a", fmt.Sprintf("after  %4d", i))
		if got := x.changed(snap); len(got) != 1 || !strings.Contains(got[0], fmt.Sprintf("before %4d", i)) {
			t.Fatalf("round %d: %q", i, got)
		}
		if err := x.store.Close(snap); err != nil {
			t.Fatal(err)
		}
	}
	if n := x.copies(); n > 2 {
		t.Errorf("%d copies are left", n)
	}
}

// An unchanged file is not read again, and copies that no snapshot needs are removed.
func TestCopiesAreShared(t *testing.T) {
	x := newTree(t)
	x.write("a", "one")
	x.settle("a")
	first, _ := x.take(DefaultLimits(), "a")
	if err := os.Chmod(filepath.Join(x.store.copies(), first.Files[0].Copy), 0o400); err != nil { // a second copy would replace it
		t.Fatal(err)
	}
	second, _ := x.take(DefaultLimits(), "a")
	if first.Files[0].Copy != second.Files[0].Copy || second.Grown || !first.Grown || x.copies() != 1 {
		t.Errorf("%+v %+v, %d copies", first, second, x.copies())
	}
	if err := x.store.Close(first); err != nil {
		t.Fatal(err)
	}
	x.write("a", "two")
	x.settle("a")
	third, _ := x.take(DefaultLimits(), "a")
	if got := x.changed(second); len(got) != 1 || !strings.Contains(got[0], "one") {
		t.Errorf("%q", got)
	}
	if err := x.store.Close(third); err != nil {
		t.Fatal(err)
	}
	if x.copies() != 2 { // the second snapshot is open
		t.Errorf("%d copies", x.copies())
	}
	for range 2 {
		if err := x.store.Close(second); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.store.Prune(time.Now().Add(time.Hour)); err != nil || x.copies() != 0 {
		t.Errorf("%d copies, %v", x.copies(), err)
	}
}

// Files that exceed a limit are reported as misses. Small files are kept first.
func TestLimits(t *testing.T) {
	x := newTree(t)
	var names []string
	for i := range 10 {
		name := fmt.Sprint("f", i)
		x.write(name, strings.Repeat("x", 10-i))
		names = append(names, name)
	}
	for name, test := range map[string]struct {
		limits Limits
		kept   int
	}{
		"files":    {Limits{Files: 3, FileBytes: 100, Bytes: 100, Time: time.Minute}, 3},
		"one file": {Limits{Files: 100, FileBytes: 4, Bytes: 100, Time: time.Minute}, 4},
		"bytes":    {Limits{Files: 100, FileBytes: 100, Bytes: 6, Time: time.Minute}, 3},
		"time":     {Limits{Files: 100, FileBytes: 100, Bytes: 100, Time: 0}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			snap, missed := x.take(test.limits, names...)
			if len(snap.Files) != test.kept || len(missed) != 10-test.kept || missed[0].Why == "" {
				t.Errorf("kept %d, missed %v", len(snap.Files), missed)
			}
			if test.kept > 0 && snap.Files[0].Path != "f9" {
				t.Errorf("first is %s", snap.Files[0].Path)
			}
		})
	}
	snap, missed, err := x.store.Take(t.Context(), Snapshot{}, []Candidate{{Path: "f0", Ignored: true}, {Path: "f1"}}, Limits{Files: 1, FileBytes: 100, Bytes: 100, Time: time.Minute},
		func(string, State, int64) bool { return false })
	if err != nil || len(snap.Files) != 1 || snap.Files[0].Path != "f1" || len(missed) != 0 {
		t.Errorf("ignored first: %+v %v %v", snap, missed, err)
	}
}

// A snapshot whose command was not compared stays in the list with its content.
func TestRecover(t *testing.T) {
	x := newTree(t)
	x.write("a", "content")
	snap, _ := x.take(DefaultLimits(), "a")
	if err := os.Remove(filepath.Join(x.root, "a")); err != nil {
		t.Fatal(err)
	}
	again := Open(x.root, x.store.dir)
	found := 0
	visit := func(s *Snapshot) error {
		found++
		if got := x.changed(s); s.ID != snap.ID || len(got) != 1 {
			t.Errorf("%+v %q", s, got)
		}
		return again.Close(s)
	}
	if err := again.Recover(func(*Snapshot) bool { return true }, visit); err != nil || found != 0 {
		t.Errorf("found %d of a command that runs: %v", found, err)
	}
	for range 2 {
		if err := again.Recover(func(*Snapshot) bool { return false }, visit); err != nil || found != 1 {
			t.Errorf("found %d: %v", found, err)
		}
	}
	snap, _ = x.take(DefaultLimits(), "a")
	if snap.ID != "" {
		t.Errorf("a snapshot of nothing has the id %s", snap.ID)
	}
	x.write("a", "content")
	snap, _ = x.take(DefaultLimits(), "a")
	if err := x.store.SetAside(snap, snap.Files); err != nil {
		t.Fatal(err)
	}
	if err := x.store.Close(snap); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(x.root, "a")); err != nil {
		t.Fatal(err)
	}
	snap.ID += "-lost"
	if err := again.Recover(func(*Snapshot) bool { return true }, visit); err != nil || found != 2 {
		t.Errorf("found %d: %v", found, err)
	}
}

// Sessions that take and close snapshots concurrently never lose a copy that one of them needs.
func TestAtOnce(t *testing.T) {
	x := newTree(t)
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprint("f", i))
		x.write(names[i], fmt.Sprint("content of ", i))
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 15 {
				var list []Candidate
				for _, n := range names {
					list = append(list, Candidate{Path: n})
				}
				snap, missed, err := x.store.Take(context.Background(), Snapshot{}, list, DefaultLimits(), func(string, State, int64) bool { return false })
				if err != nil || len(missed) > 0 {
					t.Error(missed, err)
					return
				}
				for i, f := range snap.Files {
					if content, err := x.store.Content(f); err != nil || !strings.HasPrefix(string(content), "content of ") {
						t.Errorf("%d: %q %v", i, content, err)
					}
				}
				if err := x.store.Close(snap); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
}

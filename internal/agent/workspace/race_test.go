package workspace

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A landings acts as the gate for a workspace. It replaces sets of files one after the other,
// each as soon as the set has its number.
type landings struct {
	t    *testing.T
	root string

	deciding sync.Mutex // held while a landing is carried out
	mu       sync.Mutex
	last     uint64
	paths    map[uint64][]string
}

func (l *landings) land(content string, paths ...string) {
	l.deciding.Lock()
	defer l.deciding.Unlock()
	l.mu.Lock()
	l.last++
	l.paths[l.last] = paths
	number := l.last
	l.mu.Unlock()
	for _, path := range paths {
		file := filepath.Join(l.root, path)
		temp := file + ".landing"
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			l.t.Error(err)
		}
		if err := os.WriteFile(temp, fmt.Appendf(nil, "%s %d", content, number), 0o644); err != nil {
			l.t.Error(err)
		}
		if err := os.Rename(temp, file); err != nil {
			l.t.Error(err)
		}
	}
}

// after implements Options.Landed. It waits for the landing in progress.
func (l *landings) after(_ context.Context, number uint64) (paths []string, last uint64, err error) {
	l.deciding.Lock()
	defer l.deciding.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	for n, changed := range l.paths {
		if n > number {
			paths = append(paths, changed...)
		}
	}
	return paths, l.last, nil
}

// A workspace contains every landing up to its number completely, also landings made while it is
// copied.
//
// shows: GP-5
func TestLandingsWhileCopying(t *testing.T) {
	root := t.TempDir()
	for i := range 1000 {
		write(t, root, fmt.Sprintf("d%d/f%d", i%50, i), "before 0")
	}
	l := &landings{t: t, root: root, paths: map[uint64][]string{}}
	sets := make([][]string, 100)
	for i := range sets {
		for k := range 3 {
			sets[i] = append(sets[i], fmt.Sprintf("d%d/f%d", (i*10+k)%50, i*10+k), fmt.Sprintf("new%d/%d/%d", i, k, k))
		}
	}
	meanwhile(t, 2*time.Millisecond, func(n int) error {
		l.land("landed", sets[n%len(sets)]...)
		return nil
	})
	for landed := uint64(0); landed == 0; time.Sleep(time.Millisecond) { // so that each copy overlaps a landing
		_, last, err := l.after(t.Context(), 0)
		must(t, err)
		landed = last
	}
	for range 3 * torture() {
		w := open(t, Options{Root: root, Landed: l.after})
		check := func() {
			t.Helper()
			l.mu.Lock()
			want := map[string]uint64{} // by path, the last landing that the copy must contain
			for n := uint64(1); n <= w.Seq(); n++ {
				for _, path := range l.paths[n] {
					want[path] = n
				}
			}
			l.mu.Unlock()
			for path, n := range want {
				if got := read(t, tree(t, w), path); got != fmt.Sprintf("landed %d", n) {
					t.Errorf("%s holds %q at landing %d, and should hold that of %d", path, got, w.Seq(), n)
				}
			}
		}
		check()
		if w.Seq() == 0 {
			t.Error("nothing was landed meanwhile")
		}
		found := changes(t, w)
		if len(found) > 0 {
			t.Errorf("changes %q", found)
		}
		before := w.Seq()
		moved, conflicts, err := w.CatchUp(t.Context())
		if err != nil || len(conflicts) > 0 || w.Seq() < before || w.Seq() > before != (len(moved) > 0) {
			t.Errorf("from %d to %d: %v, %v, %v", before, w.Seq(), moved, conflicts, err)
		}
		check()
		must(t, w.Close(t.Context(), false))
	}
}

// meanwhile repeats a step in the background until the test ends.
func meanwhile(t *testing.T, pause time.Duration, step func(n int) error) {
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			case <-time.After(pause):
				if err := step(n); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	t.Cleanup(func() {
		close(stop)
		writer.Wait()
	})
}

// If a copy contains part of a landing, the rest is copied before the copy counts as current. A
// landing that changes none of the paths just copied need not be waited for.
func TestLandingSeenInPart(t *testing.T) {
	root := t.TempDir()
	set := func(content string, paths ...string) {
		for _, path := range paths {
			write(t, root, path, content)
		}
	}
	set("0", "a", "b", "c")
	w := open(t, Options{Root: root, After: 10})
	calls := 0
	w.landed = func(_ context.Context, after uint64) ([]string, uint64, error) {
		calls++
		switch calls {
		case 1: // landing 12 begins right after this call
			set("11", "a", "b")
			set("12", "a")
			return []string{"a", "b"}, 11, nil
		case 2:
			set("12", "b")
			return []string{"a", "b"}, 12, nil
		case 3:
			set("13", "c")
			return []string{"c"}, 13, nil
		}
		return nil, 0, fmt.Errorf("called again, after %d", after)
	}
	moved, conflicts, err := w.CatchUp(t.Context())
	if err != nil || !slices.Equal(moved, []string{"a", "b"}) || len(conflicts) > 0 {
		t.Errorf("%v, %v, %v", moved, conflicts, err)
	}
	for path, want := range map[string]string{"a": "12", "b": "12", "c": "0"} {
		if got := read(t, tree(t, w), path); got != want {
			t.Errorf("%s is of landing %s, not %s", path, got, want)
		}
	}
	if w.Seq() != 12 {
		t.Errorf("it is current up to %d", w.Seq())
	}
	wantChanges(t, w)
}

// A file written so shortly before the copy that its modification time proves nothing is copied
// again.
func TestYoungFilesAreCopiedAgain(t *testing.T) {
	root := t.TempDir()
	plant(t, root, map[string]string{"young": "half", "gone": "x", "quiet": "y"})
	w := open(t, Options{Root: root})
	write(t, root, "young", "whole")
	must(t, os.Remove(filepath.Join(root, "gone")))
	from, err := openOrigin(root, nil)
	must(t, err)
	defer from.close()
	from.doubts = []string{"young", "gone", "young"}
	must(t, w.copyDoubts(t.Context(), from))
	same(t, "the copy", contents(t, tree(t, w)), contents(t, root))
	wantChanges(t, w)
	if len(w.Oddities()) > 0 {
		t.Errorf("oddities %v", w.Oddities())
	}
}

// If a file is constantly written in place, the copy has its content at one moment, or the file is
// reported. Files that appear and disappear do no harm.
func TestWritersWhileCopying(t *testing.T) {
	onlyCopies(t, "the first layer is made in the same way")
	root := t.TempDir()
	const size, part = 300_000, 10_000 // more than one read, and the size of one write
	for i := range 500 {
		write(t, root, fmt.Sprintf("d%d/quiet%d", i%10, i), "quiet")
	}
	letters := func(c byte) []byte { return bytes.Repeat([]byte{c}, size) }
	write(t, root, "busy", string(letters('a')))
	write(t, root, "sometimes", string(letters('a')))
	inPlace := func(name string) func(int) error {
		return func(n int) error {
			f, err := os.OpenFile(filepath.Join(root, name), os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			content := letters('a' + byte(n%26))
			for at := 0; at < size; at += part {
				if _, err := f.WriteAt(content[at:at+part], int64(at)); err != nil {
					return err
				}
			}
			return nil
		}
	}
	meanwhile(t, 0, inPlace("busy"))
	meanwhile(t, 20*time.Millisecond, inPlace("sometimes"))
	meanwhile(t, 0, func(n int) error { // whole directories appear and disappear
		dir := filepath.Join(root, "coming", fmt.Sprint(n%7))
		if n%2 == 0 {
			return os.RemoveAll(dir)
		}
		if err := os.MkdirAll(filepath.Join(dir, "and", "going"), 0o755); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, "and", "going", "file"), nil, 0o644)
	})
	meanwhile(t, 0, func(n int) error { // one name is alternately a file, a link and a directory
		name := filepath.Join(root, "turning")
		if err := os.RemoveAll(name); err != nil {
			return err
		}
		switch n % 3 {
		case 0:
			return os.WriteFile(name, []byte("file"), 0o644)
		case 1:
			return os.Symlink("link", name)
		}
		return os.MkdirAll(filepath.Join(name, "inside"), 0o755)
	})
	for range 5 * torture() {
		w := open(t, Options{Root: root})
		torn := map[string]bool{}
		for _, o := range w.Oddities() {
			if !strings.HasPrefix(o.What, "it ") || !strings.Contains(o.What, " while it was copied") {
				t.Errorf("%s: %s", o.Path, o.What)
			}
			torn[o.Path] = true
		}
		for _, name := range []string{"busy", "sometimes"} {
			content := read(t, tree(t, w), name)
			if !isMoment(content, size, part) && !torn[name] {
				t.Errorf("%s mixes two versions without a report", name)
			}
		}
		for i := range 500 {
			if got := read(t, tree(t, w), fmt.Sprintf("d%d/quiet%d", i%10, i)); got != "quiet" {
				t.Errorf("a quiet file holds %q", got)
			}
		}
		wantChanges(t, w)
		must(t, w.Close(t.Context(), false))
	}
}

// isMoment reports whether a file had this content at one moment. The file is overwritten from
// its beginning, in parts, with one letter after the other.
func isMoment(content string, size, part int) bool {
	rest := strings.TrimLeft(content, content[:1])
	if len(content) != size || len(rest)%part != 0 {
		return false
	}
	return rest == "" || strings.Trim(rest, rest[:1]) == "" && (rest[0]-'a'+1)%26 == content[0]-'a'
}

// shows: GP-5
func TestSixteenAtOnce(t *testing.T) {
	onlyCopies(t, "the first layer is made in the same way")
	root, dir := newRepository(t), t.TempDir()
	for i := range 500 {
		write(t, root, fmt.Sprintf("many/d%d/f%d", i%20, i), strings.Repeat("x", i))
	}
	before := contents(t, root)
	want := contents(t, root, gitName, stateDir)
	wantStatus := status(t, root)
	before[".git/index"] = contents(t, root)[".git/index"] // git status rewrites it
	const agents = 16
	made := make([]*Workspace, agents)
	var all sync.WaitGroup
	var failed atomic.Int32
	for i := range made {
		all.Go(func() {
			w, err := Make(t.Context(), Options{Root: root, Dir: dir})
			if err != nil {
				failed.Add(1)
				t.Error(err)
				return
			}
			made[i] = w
		})
	}
	all.Wait()
	if failed.Load() > 0 {
		return
	}
	homes := map[string]bool{}
	for _, w := range made {
		homes[w.Home()] = true
		same(t, "a copy", contents(t, tree(t, w), gitName), want)
		if got := status(t, tree(t, w)); got != wantStatus {
			t.Errorf("git says %s", got)
		}
	}
	if len(homes) != agents {
		t.Errorf("%d workspaces have %d places", agents, len(homes))
	}
	for i, w := range made { // changes in one workspace are not visible in another
		all.Go(func() {
			name := fmt.Sprintf("mine%d", i)
			if err := os.WriteFile(filepath.Join(tree(t, w), name), nil, 0o644); err != nil {
				t.Error(err)
			}
			found, err := w.Changes(t.Context())
			if err != nil || !slices.ContainsFunc(found, func(c Change) bool { return c.Path == name }) || len(found) != 1 {
				t.Errorf("changes %v, %v", found, err)
			}
			if err := w.Close(t.Context(), false); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	same(t, "the shared tree", contents(t, root), before)
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

package workspace

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// naive compares two snapshots by content and ignores stats.
func naive(before, after map[string]string) (list []string) {
	isDir := func(s string) bool { return strings.HasPrefix(s, "d") }
	kind := func(s string) byte { return s[0] }
	full := func(tree map[string]string) map[string]bool { // the directories that are not empty
		found := map[string]bool{}
		for path := range tree {
			found[filepath.Dir(path)] = true
		}
		return found
	}
	fullBefore, fullAfter := full(before), full(after)
	for path := range maps.Keys(before) {
		was := before[path]
		now, ok := after[path]
		switch {
		case path == ".":
		case !ok && !(isDir(was) && fullBefore[path]):
			list = append(list, "deleted "+path)
		case !ok || was == now:
		case kind(was) != kind(now):
			list = append(list, "type changed "+path)
		case strings.SplitN(was, " ", 2)[1] != strings.SplitN(now, " ", 2)[1]:
			list = append(list, "modified "+path)
		default:
			list = append(list, "mode changed "+path)
		}
	}
	for path, now := range after {
		if _, ok := before[path]; !ok && !(isDir(now) && fullAfter[path]) {
			list = append(list, "created "+path)
		}
	}
	slices.SortFunc(list, func(a, b string) int { return strings.Compare(pathOf(a), pathOf(b)) })
	return list
}

func pathOf(change string) string {
	for _, kind := range []Kind{Created, Modified, Deleted, ModeChanged, TypeChanged} {
		if path, ok := strings.CutPrefix(change, string(kind)+" "); ok {
			return path
		}
	}
	return change
}

// An editor makes random edits of a tree. Some edits restore the file times, so that only the
// content differs.
type editor struct {
	t    *testing.T
	rand *rand.Rand
	root string
}

var fuzzNames = []string{"a", "b", "c", "dir", "x y", "new\nline", "\xff\xfe", "q\"uote", "ü", strings.Repeat("n", 255), ".hidden", "-rf", "$HOME"}

func (e *editor) content() []byte {
	letters := make([]byte, e.rand.IntN(5)*e.rand.IntN(3))
	for i := range letters {
		letters[i] = "ab"[e.rand.IntN(2)]
	}
	return letters
}

// somewhere returns a path that may or may not exist and leads through no link.
func (e *editor) somewhere() string {
	path := e.root
	for {
		path = filepath.Join(path, fuzzNames[e.rand.IntN(len(fuzzNames))])
		info, err := os.Lstat(path)
		if err != nil || !info.IsDir() || e.rand.IntN(3) == 0 {
			return path
		}
	}
}

func (e *editor) step() {
	path := e.somewhere()
	info, err := os.Lstat(path)
	exists := err == nil
	switch n := e.rand.IntN(14); {
	case n < 4 && !exists:
		must(e.t, os.WriteFile(path, e.content(), 0o644))
	case n < 4 && info.Mode().IsRegular():
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
		must(e.t, err)
		_, err = f.Write(e.content())
		must(e.t, err)
		must(e.t, f.Close())
		if e.rand.IntN(2) == 0 { // as if the file had not been written
			must(e.t, os.Chtimes(path, time.Time{}, info.ModTime()))
		}
	case (n == 4 || n > 11) && !exists:
		must(e.t, os.Mkdir(path, 0o755))
	case n == 5 && !exists:
		must(e.t, os.Symlink([]string{"a", "b", "../a", "/etc/hosts"}[e.rand.IntN(4)], path))
	case n == 6 && !exists:
		must(e.t, syscall.Mkfifo(path, 0o600))
	case n == 7 && exists:
		must(e.t, os.RemoveAll(path))
	case n == 8 && exists && info.Mode().Type() != fs.ModeSymlink:
		mode := []os.FileMode{0o644, 0o755, 0o600, 0o700}[e.rand.IntN(4)]
		if info.IsDir() {
			mode |= 0o700
		}
		must(e.t, os.Chmod(path, mode))
	case n == 9 && exists:
		to := e.somewhere()
		if !strings.HasPrefix(to, path+"/") {
			_ = os.Rename(path, to) // may fail if the target cannot be replaced
		}
	case n == 10 && exists && info.Mode().IsRegular(): // replaced by the same or nearly the same content
		data, err := os.ReadFile(path)
		must(e.t, err)
		if e.rand.IntN(2) == 0 && len(data) > 0 {
			data[0] ^= 1
		}
		temp := filepath.Join(e.root, "temp")
		must(e.t, os.WriteFile(temp, data, info.Mode().Perm()))
		must(e.t, os.Chmod(temp, info.Mode().Perm()))
		must(e.t, os.Chtimes(temp, time.Time{}, info.ModTime()))
		must(e.t, os.Rename(temp, path))
	case n == 11 && exists && info.Mode().IsRegular():
		must(e.t, os.Chtimes(path, time.Time{}, time.Unix(e.rand.Int64N(1e9), 0)))
	}
}

// withoutPipes removes the pipes from a snapshot, as copying does.
func withoutPipes(tree map[string]string) map[string]string {
	maps.DeleteFunc(tree, func(_, what string) bool { return strings.HasPrefix(what, "p") })
	return tree
}

// Changes, TakeOut and Refresh agree with a full comparison, for random trees and random edits on
// both sides.
//
// shows: GP-5
func TestFuzz(t *testing.T) {
	rounds := 30
	if os.Getenv(onLayers) != "" {
		rounds = 10 // each has a base of its own
	}
	for round := range rounds * torture() {
		seed := uint64(time.Now().UnixNano())
		switch round {
		case 0: // the shared tree replaced a directory by a file after the agent changed its mode
			seed = 1794971757293458367
		case 1, 2: // the agent removed a file that came after the workspace was made
			seed = 1795119826325728934
		}
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			root := t.TempDir()
			shared := &editor{t: t, rand: random, root: root}
			for range 100 {
				shared.step()
			}
			if round%2 == 0 {
				git(t, root, "init", "-q")
				git(t, root, "add", ".")
				git(t, root, "commit", "-q", "--allow-empty", "-m", "base")
			}
			before := contents(t, root)
			w := open(t, Options{Root: root})
			same(t, "the shared tree", contents(t, root), before)
			copied := contents(t, tree(t, w), gitName)
			same(t, "the copy", copied, withoutPipes(contents(t, root, gitName)))
			agent := &editor{t: t, rand: random, root: tree(t, w)}
			for range 3 {
				agent.root = tree(t, w)
				for range random.IntN(40) {
					agent.step()
				}
				now := contents(t, tree(t, w), gitName)
				want := naive(copied, now)
				wantChanges(t, w, want...)
				switch random.IntN(3) {
				case 0:
					copied = fuzzTakeOut(t, w, random, copied, now, want)
				case 1:
					copied = fuzzRefresh(t, w, shared, copied)
				}
			}
			if t.Failed() {
				return
			}
			_, err := w.TakeOut(t.Context(), []string{"."})
			must(t, err)
			wantChanges(t, w)
			same(t, "what was taken out whole", contents(t, tree(t, w), gitName), copied)
			again := reopen(t, w)
			wantChanges(t, again)
		})
		if t.Failed() {
			break
		}
	}
}

// fuzzTakeOut takes out some changes. Those paths are then as copied, and the others are
// unchanged.
func fuzzTakeOut(t *testing.T, w *Workspace, random *rand.Rand, copied, now map[string]string, all []string) map[string]string {
	t.Helper()
	var paths []string
	for _, change := range all {
		if random.IntN(2) == 0 {
			paths = append(paths, pathOf(change))
		}
	}
	// A path that blocks a restored one must be removed with it.
	for _, change := range all {
		if path, ok := strings.CutPrefix(change, string(TypeChanged)+" "); ok {
			paths = append(paths, path)
		}
	}
	chosen := areaOf(paths).has
	taken, err := w.TakeOut(t.Context(), slices.Clone(paths))
	must(t, err)
	var want, got []string
	for _, change := range all {
		if chosen(pathOf(change)) {
			want = append(want, change)
		}
	}
	for _, c := range taken {
		got = append(got, string(c.Kind)+" "+c.Path)
		if c.Newer {
			continue
		}
		if c.File != "" {
			held := strings.SplitN(now[c.Path], " ", 2)[1]
			if data, err := os.ReadFile(c.File); err != nil || string(data) != held {
				t.Errorf("%q: taken is %q and the agent had %q, %v", c.Path, data, held, err)
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("taken out is %q and should be %q", got, want)
	}
	after := contents(t, tree(t, w), gitName)
	rebased := maps.Clone(copied)
	for _, c := range taken {
		if c.Newer { // the current content is the base
			delete(rebased, c.Path)
			for path, what := range after {
				if areaOf([]string{c.Path}).has(path) {
					rebased[path] = what
				}
			}
		}
	}
	left := naive(rebased, after)
	for _, change := range left {
		if chosen(pathOf(change)) {
			t.Errorf("%q is still there after it was taken out", change)
		}
	}
	wantChanges(t, w, left...)
	return rebased
}

// fuzzRefresh edits the shared tree as well and refreshes the workspace. Changes that only the
// agent made stay, and changes that only the shared tree has are copied. Where both changed a
// path, the agent's version stays and is reported.
func fuzzRefresh(t *testing.T, w *Workspace, shared *editor, copied map[string]string) map[string]string {
	t.Helper()
	mine := contents(t, tree(t, w), gitName)
	for range shared.rand.IntN(20) {
		shared.step()
	}
	now := withoutPipes(contents(t, shared.root, gitName))
	moved, conflicts, err := w.Refresh(t.Context(), []string{"."})
	must(t, err)
	var want []string
	for _, change := range naive(copied, now) {
		want = append(want, pathOf(change))
	}
	if !slices.Equal(moved, want) {
		t.Errorf("moved are\n  %q\nand should be\n  %q", moved, want)
	}
	after := contents(t, tree(t, w), gitName)
	told := map[string]bool{}
	for _, c := range conflicts {
		told[c.Change.Path] = true
	}
	untold := func(path string) bool { // neither the path nor one above or below it
		for p := range told {
			if overlap([]string{p}, []string{path}) {
				return false
			}
		}
		return true
	}
	for _, path := range slices.Sorted(maps.Keys(union(copied, mine, now))) {
		isDir := strings.HasPrefix(copied[path]+mine[path]+now[path], "d")
		switch {
		case path == "." || isDir || !untold(path): // the content of directories is compared
		case mine[path] == copied[path] && after[path] != now[path]:
			t.Errorf("%q was not brought: it is %q and should be %q", path, after[path], now[path])
		case now[path] == copied[path] && after[path] != mine[path]:
			t.Errorf("%q was the agent's, %q, and is now %q", path, mine[path], after[path])
		case mine[path] != copied[path] && now[path] != copied[path] && mine[path] != now[path]:
			t.Errorf("%q is an unreported conflict: %q, %q, %q", path, copied[path], mine[path], now[path])
		}
	}
	for path := range told {
		if strings.HasPrefix(mine[path], "-") && after[path] != mine[path] {
			t.Errorf("%q is in conflict, and was overwritten", path)
		}
	}
	// Only the workspace knows the new base, so the agent starts again.
	_, err = w.TakeOut(t.Context(), []string{"."})
	must(t, err)
	wantChanges(t, w)
	return contents(t, tree(t, w), gitName)
}

func union(trees ...map[string]string) map[string]string {
	all := map[string]string{}
	for _, tree := range trees {
		maps.Copy(all, tree)
	}
	return all
}

// reopen closes a workspace and adopts it, as another process would.
func reopen(t *testing.T, w *Workspace) *Workspace {
	t.Helper()
	must(t, w.Close(t.Context(), true))
	again, err := Adopt(w.Home(), nil)
	must(t, err)
	t.Cleanup(func() {
		if err := again.Close(context.Background(), false); err != nil {
			t.Error(err)
		}
	})
	return again
}

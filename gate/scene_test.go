package gate_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/store"
)

// A scene is a commit, with scans of the tree before and after it.
type scene struct {
	changes  []gate.Change
	old, new map[string]string
}

// bystander is a file that no scene touches.
const bystander = "test/bystander"

func plain(content string) string { return "-rw-r--r-- " + content }

// add adds a change of some kind, with its own names, to a scene.
func (s *scene) add(kind, name string) {
	path := "test/" + name
	before, after := plain("old "+name), plain("new "+name)
	put := gate.Put(path, []byte("new "+name))
	switch kind {
	case "create":
		s.changes, s.new[path] = append(s.changes, put), after
	case "deep":
		put.Path = "test/made/" + name + "/in/it"
		s.changes, s.new[put.Path] = append(s.changes, put), after
		for dir := filepath.Dir(put.Path); dir != "test"; dir = filepath.Dir(dir) {
			s.new[dir] = "drwxr-xr-x "
		}
	case "replace":
		s.changes, s.old[path], s.new[path] = append(s.changes, put), before, after
	case "delete":
		s.changes, s.old[path] = append(s.changes, gate.Delete(path)), before
	case "rename":
		s.changes, s.old[path], s.new[path+".moved"] = append(s.changes, gate.Rename(path, path+".moved")...), before, before
	case "mode":
		s.changes, s.old[path], s.new[path] = append(s.changes, chmod(path, 0o750)), before, "-rwxr-x--- old "+name
	}
}

// kinds lists the kinds of changes.
var kinds = []string{"create", "deep", "replace", "delete", "rename", "mode"}

// scenes returns commits of every kind, and commits of 2, 3 and 20 files.
func scenes() map[string]scene {
	all := map[string][]string{
		"two":    {"replace", "create"},
		"three":  {"create", "create", "create"},
		"twenty": slices.Concat(slices.Repeat([]string{"replace", "create", "deep", "delete"}, 3), []string{"rename", "mode", "rename", "mode", "replace", "create"}),
	}
	for _, kind := range kinds {
		all[kind] = []string{kind}
	}
	out := map[string]scene{}
	for name, list := range all {
		s := scene{old: map[string]string{}, new: map[string]string{}}
		for n, kind := range list {
			s.add(kind, fmt.Sprint("f", n))
		}
		for _, dir := range []string{".", "test"} {
			s.old[dir], s.new[dir] = "drwxr-xr-x ", "drwxr-xr-x "
		}
		s.old[bystander], s.new[bystander] = plain("stays"), plain("stays")
		out[name] = s
	}
	return out
}

func (s scene) paths() (list []string) {
	for _, c := range s.changes {
		list = append(list, c.Path)
	}
	return list
}

// plantScan creates exactly the tree that a scan describes.
func plantScan(t testing.TB, root string, tree map[string]string) {
	t.Helper()
	must(t, os.RemoveAll(filepath.Join(root, "test")), os.Chmod(root, 0o755))
	for _, path := range slices.Sorted(maps.Keys(tree)) {
		at := filepath.Join(root, path)
		if tree[path][0] == 'd' {
			must(t, os.MkdirAll(at, 0o755))
			continue
		}
		must(t, os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(tree[path][len(plain("")):]), 0o644))
	}
}

// holds reports whether a tree equals a scan, except at some paths.
func holds(tree, want map[string]string, except ...string) bool {
	tree, want = maps.Clone(tree), maps.Clone(want)
	for _, path := range except {
		delete(tree, path)
		delete(want, path)
	}
	return maps.Equal(tree, want)
}

// edit changes a file without a lock, as a person would.
func edit(t testing.TB, root, path, content string) {
	t.Helper()
	at := filepath.Join(root, path)
	must(t, os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(content), fs.FileMode(0o644)))
}

// agreed checks that the tree matches the state of the one landing under a grant, except at
// some paths, and that the landing has ended. If no landing was decided, it counts as undone.
func agreed(w *world, grantID string, s scene, except ...string) (state lockkeeper.LandingState, decided bool) {
	t := w.t
	t.Helper()
	var found []*lockkeeper.Landing
	must(t, w.store.View(t.Context(), func(r store.Reader) (err error) {
		found, err = r.Landings(store.LandingQuery{GrantID: grantID})
		return err
	}))
	state = lockkeeper.Undone
	if decided = len(found) > 0; decided {
		state = found[0].State
	}
	want := s.old
	switch {
	case len(found) > 1 || state == lockkeeper.Decided:
		t.Errorf("%d landings, %s", len(found), state)
	case state == lockkeeper.Committed:
		want = s.new
	}
	if tree := scan(t, w.dir, ".lockkeeper"); !holds(tree, want, except...) {
		t.Errorf("the landing is %s, but %v", state, differences(want, tree))
	}
	return state, decided
}

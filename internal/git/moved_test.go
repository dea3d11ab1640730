package git

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockkeeper/internal/git/gittest"
)

// Moved finds new files that were missing ones, staged or not, in a root below the top of a work
// tree with a colon in its name, whatever the person's configuration says. It leaves nothing in
// the repository.
func TestMoved(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		text := func(of string) string { return strings.Repeat("a line of "+of+"\n", 20) }
		top := newTree(t, map[string]string{"sub:tree/a": text("a"), "sub:tree/b/ü\n": text("b"), "sub:tree/c": text("c"), "sub:tree/empty": "", "sub:tree/stays": text("stays")}, "--object-format="+format)
		root := filepath.Join(top, "sub:tree")
		gittest.Hostile(t)
		remove(t, root, "a", "b", "c", "empty")
		plant(t, root, map[string]string{"new/a": text("a") + "more\n", "new/b\n": text("b"), "new/c": text("c"), "new/empty": "", "new/copy": text("stays"), "new/other": text("others")})
		person(t, root, "add", "new/a", "new/c", "c")
		plant(t, root, map[string]string{"now/a": text("a")})
		objects := person(t, root, "count-objects", "-v")
		before := workTreeState(t, top)
		tree := NewWorkTree(root, root, gittest.Env())
		list, gone, err := tree.Differences(t.Context(), false)
		must(t, err)
		moved, err := tree.Moved(t.Context(), gone, list)
		must(t, err)
		var got []string
		for _, to := range slices.Sorted(maps.Keys(moved)) {
			got = append(got, moved[to]+" > "+to)
		}
		equal(t, format, got, []string{"a > new/a", "b/ü\n > new/b\n", "c > new/c", "a > now/a"})
		equal(t, "objects", person(t, root, "count-objects", "-v"), objects)
		equal(t, "work tree", workTreeState(t, top), before)
		list, gone, err = tree.Differences(t.Context(), true)
		must(t, err)
		staged, err := tree.Moved(t.Context(), gone, list)
		must(t, err)
		equal(t, "staged", slices.Sorted(maps.Keys(staged)), []string{"new/a", "new/c"})
	}
}

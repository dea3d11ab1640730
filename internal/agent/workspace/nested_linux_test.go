package workspace

import (
	"os"
	"path/filepath"
	"testing"
)

// A nested repository that a person removes, as a whole or only its .git, is gone from later
// workspaces.
func TestBaseWithoutNestedRepository(t *testing.T) {
	for _, gone := range []string{"sub", "sub/.git"} {
		root := base(t)
		write(t, root, "sub/code.rb", "1")
		git(t, filepath.Join(root, "sub"), "init", "-q")
		git(t, filepath.Join(root, "sub"), "add", ".")
		git(t, filepath.Join(root, "sub"), "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "-m", "one")
		b := newBase(t, Options{Root: root})
		before := on(t, b)
		must(t, os.RemoveAll(filepath.Join(root, gone)))
		w := on(t, b)
		if _, err := os.Lstat(filepath.Join(tree(t, w), gone)); err == nil {
			t.Errorf("%s is still there", gone)
		}
		wantChanges(t, w)
		if _, err := os.Lstat(filepath.Join(tree(t, before), gone)); err != nil {
			t.Errorf("%s is gone from an earlier workspace: %v", gone, err)
		}
	}
}

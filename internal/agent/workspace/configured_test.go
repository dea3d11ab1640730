package workspace

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockkeeper/internal/git/gittest"
)

// A workspace is the same for every git configuration of a person.
func TestWorkspaceOfAPersonWithAConfiguration(t *testing.T) {
	root := newRepository(t)
	gittest.Hostile(t, "core.autocrlf=false")
	before := contents(t, root)
	w := open(t, Options{Root: root})
	same(t, "the shared tree", contents(t, root), before)
	sameStatus(t, w, root, ".")
	wantChanges(t, w)
	write(t, tree(t, w), "app/models/user.rb", "class User # changed\nend\n")
	wantChanges(t, w, "modified app/models/user.rb")
}

// A person may have configured line ends and filters for all repositories. Files do not look
// modified to an agent, which does not have that configuration.
func TestContentAsAPersonHasItCheckedOut(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config")
	must(t, os.WriteFile(config, []byte("[core]\n\tautocrlf = true\n[filter \"upper\"]\n\tclean = tr a-z A-Z\n\tsmudge = tr A-Z a-z\n[alias]\n\tx = status\n"), 0o644))
	t.Setenv("GIT_CONFIG_GLOBAL", config)
	person := append(slices.Clone(gittest.Env()), "GIT_CONFIG_GLOBAL="+config)
	root := t.TempDir()
	plant(t, root, map[string]string{"lines.txt": "one\r\ntwo\r\n", "a.bin": "hello\n", ".gitattributes": "*.bin filter=upper\n"})
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"commit", "-q", "-m", "first"}} {
		if out, err := tryGit(root, person, args...); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	w := open(t, Options{Root: root})
	if out := git(t, tree(t, w), "status", "--porcelain"); out != "" {
		t.Errorf("git status in the workspace:\n%s", out)
	}
	if config := git(t, tree(t, w), "config", "--local", "--list"); strings.Contains(config, "alias") {
		t.Errorf("it has more of the person's configuration than it needs:\n%s", config)
	}
}

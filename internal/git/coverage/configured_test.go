package coverage_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/diff"

	"lockkeeper/internal/git"
	"lockkeeper/internal/git/coverage"
	"lockkeeper/internal/git/gittest"
	"lockkeeper/internal/session"
)

// The answers about a work tree do not depend on the person's git configuration.
func TestAnswersOfAConfiguredGit(t *testing.T) {
	w := newWorkTree(t)
	library := filepath.Join(t.TempDir(), "library")
	write(t, filepath.Join(library, "l.rb"), "library")
	gittest.Run(t, library, "init", "-q", "-b", "main")
	gittest.Run(t, library, "add", ".")
	gittest.Run(t, library, "commit", "-qm", "library")
	w.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", library, "lib")
	for _, name := range []string{"app/edited.rb", "app/Staged.rb", "app/removed.rb", "app/moved.rb", "app/crlf.txt"} {
		write(t, filepath.Join(w.dir, name), "one two three\nfour\r\n\nfive "+name+"\n")
	}
	write(t, filepath.Join(w.dir, ".gitignore"), "*.log\n")
	w.git("add", ".")
	w.git("commit", "-qm", "first")
	for _, name := range []string{"app/edited.rb", "app/staged.rb", "app/ü new.rb", "app/a.log", "app/crlf.txt", "lib/l.rb"} {
		write(t, filepath.Join(w.dir, name), "one two threescore\nfour\r\n\nfive "+name+"\n")
	}
	w.git("add", "app/staged.rb")
	w.git("mv", "app/moved.rb", "app/there.rb")
	w.git("rm", "-q", "app/removed.rb")
	gittest.Run(t, filepath.Join(w.dir, "lib"), "commit", "-qam", "second")
	write(t, filepath.Join(w.dir, "lib/new.rb"), "new")

	seen := func() string {
		t.Helper()
		tree := git.NewWorkTree(w.dir, w.dir, os.Environ())
		var answers []any
		for _, staged := range []bool{false, true} {
			list, err := coverage.Find(t.Context(), w.Project, tree, nil, staged)
			if err != nil {
				t.Fatal(err)
			}
			answers = append(answers, list)
		}
		atRisk, err := session.AtRisk(t.Context(), w.Project)
		if err != nil {
			t.Fatal(err)
		}
		unsaved, ignored, err := tree.Unsaved(t.Context(), git.Unsaved{Paths: []string{"app", "lib"}, Literal: true, Tracked: true, Untracked: true, Ignored: true})
		if err != nil {
			t.Fatal(err)
		}
		words, err := tree.WordDiff(t.Context(), "app/crlf.txt")
		if err != nil || words == "" {
			t.Fatalf("%q, %v", words, err)
		}
		_, has, err := git.CommitHooks(t.Context(), tree)
		text, bad := json.MarshalIndent(append(answers, atRisk, unsaved, ignored, has, err != nil), "", " ")
		if bad != nil {
			t.Fatal(bad)
		}
		_, words, _ = strings.Cut(words, "@@\n") // the amount of context does not matter
		words, _, _ = strings.Cut(words, "~")
		return string(text) + words
	}
	want := seen()
	gittest.Hostile(t, "core.hooksPath="+filepath.Join(w.dir, ".git/hooks"))
	if got := seen(); got != want {
		t.Errorf("with a configuration git answers otherwise:\n%s", diff.Diff("without", []byte(want), "with", []byte(got)))
	}
}

package git

import (
	"os"
	"strings"
	"testing"

	"lockkeeper"
	"lockkeeper/internal/git/gittest"
)

// A person's configuration decides whether a commit is signed, which hooks run and which files
// are ignored. It changes neither the content of a commit nor the state read from the repository.
func TestCommitOfAPersonWithAConfiguration(t *testing.T) {
	root := newTree(t, map[string]string{"changed.rb": "1\n", "gone": "1\n", "staged": "1\n", "case": "1\n"})
	plant(t, root, map[string]string{"staged": "2\n", "Case": "other\n"})
	person(t, root, "add", "staged")
	before := status(t, root)
	head := strings.TrimSpace(person(t, root, "rev-parse", "HEAD"))
	person(t, root, "config", "user.name", "Otter")
	person(t, root, "config", "user.email", "otter@example.org")
	plant(t, root, map[string]string{"changed.rb": "2\n", "dir/new": "2\n", "notes.mine": "2\n"})
	remove(t, root, "gone")
	c := Commit{Paths: []string{"changed.rb", "dir/new", "gone", "notes.mine"}, Subject: "Größe", Body: "* kept, and not a comment", Trailers: []Trailer{{"Lockkeeper-Batch", "b1"}}}

	refused := func(reason string, changes ...string) {
		t.Helper()
		gittest.Hostile(t, changes...)
		r, err := Open(t.Context(), root, os.Environ())
		must(t, err)
		if _, err := r.Commit(t.Context(), c); lockkeeper.CodeOf(err) != lockkeeper.CodeRefused || !strings.Contains(err.Error(), reason) {
			t.Errorf("%v, want %s", err, reason)
		}
	}
	refused("the hook says no", "commit.gpgSign=false")
	refused("commit.gpgsign", "core.hooksPath="+os.DevNull)

	gittest.Hostile(t, "core.hooksPath="+os.DevNull, "commit.gpgSign=false")
	r, err := Open(t.Context(), root, os.Environ())
	must(t, err)
	done := commit(t, r, c)
	equal(t, "commit", inCommit(t, root, done.Hash), []string{"A dir/new", "D gone", "M changed.rb"})
	equal(t, "left", done.Left[0], Left{"notes.mine", "git ignores it"})
	equal(t, "message", person(t, root, "log", "-1", "--format=%B"), "Größe\n\n* kept, and not a comment\n\nLockkeeper-Batch: b1\n\n")
	must(t, os.Remove(root+"/notes.mine"))
	equal(t, "status", status(t, root), before)
	found, err := r.Find(t.Context(), "Lockkeeper-Batch", "b1")
	must(t, err)
	equal(t, "found", found, done.Hash)
	changed, err := r.Changed(t.Context(), head, done.Hash)
	must(t, err)
	equal(t, "changed", strings.Join(changed, " "), "changed.rb dir/new gone")
	equal(t, "nothing to commit", commit(t, r, Commit{Paths: []string{"changed.rb"}}).Hash, "")
	must(t, r.Switch(t.Context(), "lockkeeper/run"))
}

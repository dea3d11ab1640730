package git

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"lockkeeper/internal/git/gittest"
)

// published returns a work tree whose branch has an upstream, and the repository of that upstream.
func published(t *testing.T) (root, server string) {
	t.Helper()
	root, server = newTree(t, map[string]string{"a": "1"}), filepath.Join(t.TempDir(), "server.git")
	person(t, root, "init", "-q", "--bare", "-b", "main", server)
	person(t, root, "remote", "add", "origin", server)
	person(t, root, "push", "-q", "-u", "origin", "main")
	return root, server
}

func head(t *testing.T, dir, name string) string {
	t.Helper()
	return strings.TrimSpace(person(t, dir, "rev-parse", name))
}

// Commits that are pushed at the same moment, in any order and by several processes, all arrive, without an error.
func TestPushAtOnce(t *testing.T) {
	root, server := published(t)
	var commits []string
	for range 8 {
		person(t, root, "commit", "-q", "--allow-empty", "-m", "next")
		commits = append(commits, head(t, root, "HEAD"))
	}
	var pushes sync.WaitGroup
	for _, r := range []*Repo{open(t, root), open(t, root)} {
		for i := range commits {
			pushes.Go(func() {
				if err := r.Push(t.Context(), commits[len(commits)-1-i]); err != nil {
					t.Errorf("commit %d: %v", len(commits)-1-i, err)
				}
			})
		}
	}
	pushes.Wait()
	if got, want := head(t, server, "main"), head(t, root, "HEAD"); got != want {
		t.Errorf("the server has %s, want %s", got, want)
	}
}

// A push over commits of others is refused, names the next step and changes nothing. It succeeds after that step.
func TestPushOverOthers(t *testing.T) {
	root, server := published(t)
	other := filepath.Join(t.TempDir(), "other")
	person(t, root, "clone", "-q", server, other)
	person(t, other, "commit", "-q", "--allow-empty", "-m", "theirs")
	person(t, other, "push", "-q")
	person(t, root, "commit", "-q", "--allow-empty", "-m", "ours")
	r, err := Open(t.Context(), root, gittest.Env())
	must(t, err)
	if err := r.Push(t.Context(), head(t, root, "HEAD")); err == nil || !strings.Contains(err.Error(), "has commits that this clone lacks") {
		t.Errorf("pushed over a commit of others: %v", err)
	}
	if got, want := head(t, server, "main"), head(t, other, "HEAD"); got != want {
		t.Errorf("the server has %s, want %s", got, want)
	}
	person(t, root, "pull", "-q", "--rebase")
	must(t, r.Push(t.Context(), head(t, root, "HEAD")))
	if got, want := head(t, server, "main"), head(t, root, "HEAD"); got != want {
		t.Errorf("the server has %s, want %s", got, want)
	}
}

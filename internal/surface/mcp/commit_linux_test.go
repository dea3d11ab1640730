package mcp_test

import (
	"strings"
	"testing"

	"lockkeeper/internal/git/gittest"
	"lockkeeper/internal/surface/access"
)

// A client commits exactly its own files, with its name for them, beside those of others.
//
// shows: CF-15
func TestCommit(t *testing.T) {
	s := newScene(t)
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"config", "user.name", "Otter"}, {"config", "user.email", "otter@example.org"}, {"add", "app"}, {"commit", "-qm", "first"}} {
		gittest.Run(t, s.Root, args...)
	}
	address := s.serve()
	one, other := s.http("one", address, s.token("one", access.Agent)), s.http("other", address, s.token("other", access.Agent))
	one.call("write", args{"path": "app/user.rb", "text": "half\n", "base": sumOf(s.read("app/user.rb"))}).fine("WROTE")
	gittest.Run(t, s.Root, "add", "app/user.rb")
	other.call("write", args{"path": "app/post.rb", "text": "class Post; end\n", "base": sumOf(s.read("app/post.rb"))}).fine("WROTE")
	other.call("commit", args{"message": ""}).not("message")
	other.call("commit", args{"message": "theirs", "paths": []string{"app/user.rb"}}).not("app/user.rb")
	other.call("commit", args{"message": "By the other"}).fine("COMMITTED", "on main: app/post.rb", "left out app/user.rb")
	if got := gittest.Run(t, s.Root, "show", "--format=%s", "--name-only", "HEAD"); strings.Join(strings.Fields(got), " ") != "By the other app/post.rb" {
		t.Errorf("committed %q", got)
	}
	if got := gittest.Run(t, s.Root, "diff", "--cached", "--name-only"); strings.TrimSpace(got) != "app/user.rb" {
		t.Errorf("staged: %q", got)
	}
}

package lfs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/session"
	"lockkeeper/store"
)

// clone clones the repository for a person and configures git-lfs with the server and the
// person's token.
func (s *scene) clone(name, address string) string {
	s.t.Helper()
	dir := filepath.Join(s.Dir, name)
	s.do(s.Dir, "git", "clone", "-q", filepath.Join(s.Dir, "origin.git"), dir)
	s.do(dir, "git", "config", "lfs.url", address+"/lfs")
	s.do(dir, "git", "config", "lfs."+address+"/lfs.locksverify", "true")
	s.do(dir, "git", "config", "credential.helper", "!f() { echo username="+name+"; echo password="+s.tokens[name]+"; }; f")
	s.do(dir, "git", "lfs", "install", "--local")
	return dir
}

// publish makes the codebase a repository with an origin.
func (s *scene) publish() {
	s.t.Helper()
	origin := filepath.Join(s.Dir, "origin.git")
	s.do(s.Dir, "git", "init", "-q", "--bare", "-b", "main", origin)
	s.do(s.Root, "git", "init", "-q", "-b", "main")
	s.do(s.Root, "git", "add", ".gitattributes", "art")
	s.do(s.Root, "git", "commit", "-qm", "art")
	s.do(s.Root, "git", "push", "-q", origin, "main")
}

// change commits new content of a file.
func (s *scene) change(dir, path, text string) {
	s.t.Helper()
	file := filepath.Join(dir, path)
	must(s.t, os.Chmod(file, 0o644), os.WriteFile(file, []byte(text), 0o644)) // git-lfs makes lockable files read-only
	s.do(dir, "git", "commit", "-qam", text)
}

// leftByTheDead claims a file for an agent whose process then ends.
func (s *scene) leftByTheDead(path string) {
	s.t.Helper()
	host := exec.Command("sleep", "600")
	must(s.t, host.Start())
	who, err := process.Identify(host.Process.Pid)
	must(s.t, err)
	sess, err := session.Open(s.App).Enter(s.t.Context(), session.Caller{ID: "gone", Agent: "claude-code", Process: &who})
	must(s.t, err)
	said, err := sess.Claim(s.t.Context(), session.Write{Path: path})
	must(s.t, err, sess.Close(), host.Process.Kill())
	if len(said) > 0 {
		s.t.Errorf("refused: %v", said)
	}
	host.Wait() // it was killed
}

// The real git-lfs locks, lists, unlocks and verifies before a push, with the same lock
// engine as the agents.
//
// shows: CF-14 CF-15 DL-72
func TestGitLFS(t *testing.T) {
	if _, err := exec.LookPath("git-lfs"); err != nil {
		t.Fatalf("%v; `make test` installs it", err)
	}
	s := newScene(t)
	s.publish()
	address, end := s.Serve(t, "127.0.0.1:0")
	defer func() { end() }()
	ann, bob := s.clone("ann", address), s.clone("bob", address)
	root, robot := s.clone("root", address), s.clone("robot", address)

	s.do(ann, "git", "lfs", "lock", "art/hero.psd")
	for _, dir := range []string{ann, bob, robot} {
		if out := s.do(dir, "git", "lfs", "locks"); !strings.Contains(out, "art/hero.psd") || !strings.Contains(out, "ann") {
			t.Errorf("locks: %s", out)
		}
	}
	s.refused(bob, []string{"ann"}, "git", "lfs", "lock", "art/hero.psd")
	s.refused(ann, []string{"art/hero.psd"}, "git", "lfs", "lock", "art/hero.psd")
	s.refused(bob, []string{"locked by ann"}, "git", "lfs", "unlock", "art/hero.psd")
	s.refused(bob, []string{"admin"}, "git", "lfs", "unlock", "--force", "art/hero.psd")
	s.refused(robot, []string{"agent"}, "git", "lfs", "unlock", "--force", "art/hero.psd")
	s.refused(robot, []string{"robot has the role agent"}, "git", "lfs", "lock", "art/sky.psd")

	// Locks of a person block an agent, and the other way around.
	sessions := session.Open(s.App)
	sess, err := sessions.Enter(t.Context(), session.Caller{ID: "s1", Agent: "claude-code", About: "paint the tree"})
	must(t, err)
	said, err := sess.Claim(t.Context(), session.Write{Path: "art/hero.psd"})
	must(t, err)
	if len(said) != 1 || !strings.Contains(said[0].String(), `held by ann "git lfs lock"`) {
		t.Errorf("the agent got %v", said)
	}
	said, err = sess.Claim(t.Context(), session.Write{Path: "art/tree.psd"})
	must(t, err)
	if len(said) > 0 {
		t.Fatalf("the agent was refused: %v", said)
	}
	callsign := sess.Info().Callsign
	s.refused(bob, []string{callsign, "paint the tree"}, "git", "lfs", "lock", "art/tree.psd")
	if out := s.do(bob, "git", "lfs", "locks"); !strings.Contains(out, callsign) {
		t.Errorf("locks: %s", out)
	}

	// Locks of other people and of agents block a push.
	s.change(bob, "art/hero.psd", "hero by bob")
	s.refused(bob, []string{"art/hero.psd", "ann"}, "git", "push", "-q", "origin", "main")
	s.do(bob, "git", "reset", "-q", "--hard", "origin/main")
	s.change(bob, "art/tree.psd", "tree by bob")
	s.refused(bob, []string{"art/tree.psd", callsign}, "git", "push", "-q", "origin", "main")
	must(t, sess.Release(t.Context()), sess.Close())
	s.leftByTheDead("art/tree.psd")
	if out := s.do(bob, "git", "lfs", "locks"); strings.Contains(out, "art/tree.psd") {
		t.Errorf("an agent that is gone still has a lock: %s", out)
	}
	s.do(bob, "git", "push", "-q", "origin", "main")
	s.do(ann, "git", "pull", "-q", "--rebase", "origin", "main")
	s.change(ann, "art/hero.psd", "hero by ann")
	s.do(ann, "git", "push", "-q", "origin", "main")

	// Locks survive a restart of the server, and their owner can unlock them.
	end()
	_, end = s.Serve(t, strings.TrimPrefix(address, "http://"))
	s.do(ann, "git", "lfs", "unlock", "art/hero.psd")
	s.do(ann, "git", "lfs", "lock", "art/sky.psd")
	s.do(root, "git", "lfs", "unlock", "--force", "art/sky.psd")
	if out := s.do(bob, "git", "lfs", "locks"); strings.TrimSpace(out) != "" {
		t.Errorf("still locked: %s", out)
	}
	events, err := s.App.Locks.Events(t.Context(), store.EventQuery{Limit: 1_000, Latest: true})
	must(t, err)
	seen := map[string]bool{}
	for _, ev := range events {
		seen[string(ev.Kind)+" by "+ev.Actor.Name] = true
	}
	for _, want := range []string{"force_released by root", "refused by robot", "acquired by ann"} {
		if !seen[want] {
			t.Errorf("no event %q: %v", want, seen)
		}
	}
}

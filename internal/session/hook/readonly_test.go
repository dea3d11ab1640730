package hook_test

import (
	"io/fs"
	"os"
	"strings"
	"testing"
)

func (s *stage) mode(name string, want fs.FileMode) {
	s.t.Helper()
	info, err := os.Stat(s.at(name))
	if err != nil {
		s.t.Fatal(err)
	}
	if info.Mode().Perm() != want {
		s.t.Errorf("%s has %04o instead of %04o", name, info.Mode().Perm(), want)
	}
}

func (s *stage) chmod(name string, mode fs.FileMode) {
	s.t.Helper()
	if err := os.Chmod(s.at(name), mode); err != nil {
		s.t.Fatal(err)
	}
}

func newReadOnlyStage(t *testing.T) *stage {
	t.Helper()
	s := newStage(t)
	s.write("lockkeeper.yaml", "sessions: {read_only: on}\n")
	return s
}

// A file with a set-group-ID bit is left as it is, because the bit would be lost.
func TestReadOnlyLosesNoBits(t *testing.T) {
	s := newReadOnlyStage(t)
	s.chmod(user, 0o755|fs.ModeSetgid)
	s.reads("A", user)
	s.passes(s.edit("A", user))
	s.passes(s.edited("A", user))
	s.passes(s.claude("A", "Stop", "", nil))
	info, err := os.Stat(s.at(user))
	if err != nil || info.Mode() != 0o755|fs.ModeSetgid {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// With sessions.read_only, a held file is read-only except while a call of its holder runs, and has
// its own permissions again afterwards. The holder and others are told nothing about that.
//
// shows: GP-5
func TestReadOnly(t *testing.T) {
	s := newReadOnlyStage(t)
	s.chmod(user, 0o755)
	s.chmod(post, 0o600)
	quiet := func(r said) {
		t.Helper()
		if s.passes(r); strings.Contains(r.all(), ".rb") {
			t.Error(r.all())
		}
	}
	s.reads("A", user)
	quiet(s.edit("A", user))
	s.mode(user, 0o755)
	s.write(user, "by A\n")
	quiet(s.edited("A", user))
	s.mode(user, 0o555)
	s.refuses(s.edit("B", user))
	s.mode(user, 0o555)

	quiet(s.edit("A", post)) // another file of the same session stays protected
	s.mode(post, 0o600)
	s.mode(user, 0o555)
	s.write(post, "by A\n")
	quiet(s.edited("A", post))
	s.mode(post, 0o400)

	const command = "echo more >> " + user
	quiet(s.bash("A", "PreToolUse", command)) // a command may write all of them
	s.mode(user, 0o755)
	s.mode(post, 0o600)
	quiet(s.bash("B", "PreToolUse", "ls")) // not this one
	quiet(s.bash("B", "PostToolUse", "ls"))
	s.chmod(user, 0o700)
	s.write(user, "by A\nmore\n")
	quiet(s.bash("A", "PostToolUse", command))
	s.mode(user, 0o500)
	s.mode(post, 0o400)

	quiet(s.replace("A", user)) // it knows the content
	quiet(s.claude("A", "PostToolUse", "Write", map[string]any{"file_path": s.at(user)}))
	quiet(s.claude("A", "Stop", "", nil))
	s.mode(user, 0o700)
	s.mode(post, 0o600)
	quiet(s.edit("B", user))
	s.mode(user, 0o700)
}

// A file that was read-only before stays so. Permissions that a person changes, and a file that
// replaces a held one, are left as they are.
func TestReadOnlyLeavesOthers(t *testing.T) {
	s := newReadOnlyStage(t)
	s.chmod(user, 0o444)
	s.passes(s.edit("A", user))
	s.passes(s.edited("A", user))
	s.passes(s.edit("A", post))
	s.passes(s.edited("A", post))
	s.mode(post, 0o444)
	s.chmod(post, 0o640)
	s.passes(s.claude("A", "Stop", "", nil))
	s.mode(user, 0o444)
	s.mode(post, 0o640)
	s.edits("B", "app/new.rb", "by B\n")
	s.mode("app/new.rb", 0o444)
	if err := os.Remove(s.at("app/new.rb")); err != nil {
		t.Fatal(err)
	}
	s.write("app/new.rb", "by an editor\n")
	s.chmod("app/new.rb", 0o604)
	s.passes(s.claude("B", "Stop", "", nil))
	s.mode("app/new.rb", 0o604)
}

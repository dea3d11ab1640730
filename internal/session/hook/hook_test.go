package hook_test

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockkeeper"
	"lockkeeper/internal/session"
	"lockkeeper/internal/session/deferred"
)

const user, post = "app/models/user.rb", "app/models/post.rb"

// A session holds a file until the end of its turn. Another session is refused in every way that
// it tries meanwhile, and is told when the file is free.
//
// shows: GP-5 CF-15
func TestTurn(t *testing.T) {
	s := newStage(t)
	s.passes(s.claude("A", "UserPromptSubmit", "rate-limit login\nand more", nil))
	s.edits("A", user, "class User # A\nend\n")
	r := s.refuses(s.edit("B", user), `"rate-limit login"`, ", last write ", "(ticket 1)", "free now: app/views/users/*, test/models/user_test.rb")
	if again := s.edit("B", user); again.err != r.err && !strings.Contains(again.err, "(ticket 1)") {
		t.Errorf("another ticket: %s", again.err)
	}
	for _, command := range []string{"cat > " + user + " <<'E'\nx\nE", "sed -i s/a/b/ app/models/*.rb", "rm -rf app", "git stash", "git reset --hard",
		"python3 -c \"open('" + user + "','w').write('')\"", "nohup sh -c 'sleep 9; echo x > " + user + "' &"} {
		s.refuses(s.bash("B", "PreToolUse", command))
	}
	s.passes(s.bash("B", "PreToolUse", "ls; grep -r User app"))
	s.passes(s.edit("B", post))
	s.refuses(s.edit("A", post)) // each holds the file that the other wants: both are told, neither waits
	s.passes(s.claude("A", "Stop", "", nil))
	s.says(s.passes(s.edited("B", post)), "FREE "+user+" (ticket 1)")
	s.passes(s.edit("B", user))
	s.passes(s.claude("B", "SessionEnd", "other", nil))
	a := s.open()
	if grants, err := a.Locks.ActiveGrants(t.Context()); err != nil || len(grants) != 0 {
		t.Errorf("%v %v", grants, err)
	}
}

// The codebase is found from the file, wherever the agent works. Files outside every codebase are
// allowed; files of a codebase that no longer exists are not.
func TestWhere(t *testing.T) {
	s := newStage(t)
	elsewhere := t.TempDir()
	call := func(file string) said {
		return s.call("claude-code", map[string]any{"session_id": "A", "hook_event_name": "PreToolUse", "tool_name": "Edit", "tool_use_id": "t", "cwd": elsewhere,
			"tool_input": map[string]any{"file_path": file}})
	}
	s.passes(call(s.at(user)))
	s.passes(call(s.at("app/new/deep/file.rb")))
	s.passes(call(filepath.Join(elsewhere, "free.txt")))
	link := filepath.Join(elsewhere, "link.rb")
	if err := os.Symlink(s.at(user), link); err != nil {
		t.Fatal(err)
	}
	s.refuses(s.edit("B", user))
	call = func(file string) said {
		return s.call("claude-code", map[string]any{"session_id": "B", "hook_event_name": "PreToolUse", "tool_name": "Edit", "tool_use_id": "t", "cwd": elsewhere,
			"tool_input": map[string]any{"file_path": file}})
	}
	s.refuses(call(link))
	if err := os.RemoveAll(s.at(".lockkeeper")); err != nil {
		t.Fatal(err)
	}
	s.refuses(call(s.at(post)), "cannot check the locks", "is gone", "lockkeeper off 30m")
}

// A session can replace a whole file only if it knows the content.
func TestUnseen(t *testing.T) {
	s := newStage(t)
	s.refuses(s.replace("A", user), "you have not read it")
	s.reads("A", user)
	s.passes(s.replace("A", user))
	s.write(user, "by A\n")
	s.passes(s.claude("A", "PostToolUse", "Write", map[string]any{"file_path": s.at(user)}))
	s.passes(s.replace("A", user))
	s.write(user, "by A again\n")
	s.passes(s.claude("A", "PostToolUse", "Write", map[string]any{"file_path": s.at(user)}))
	s.write(user, "by an editor\n") // or by an agent without hooks
	r := s.refuses(s.replace("A", user), "its content is not what you saw", "DISTURBED "+user, "Your version is kept: lockkeeper rescue show")
	if strings.Contains(r.err, "by A again") {
		t.Error("content is told")
	}
	if s.read(user) != "by an editor\n" {
		t.Error("the person's edit was changed")
	}
	s.runs("A", "cat "+user)
	s.passes(s.replace("A", user))
	s.passes(s.replace("A", "app/new.rb"))
}

// Changes that a command made to files of others are shown, attributed and kept. They are
// reverted only if that is configured, and never if another program may have made them.
//
// shows: GP-5 CF-15
func TestUncovered(t *testing.T) {
	for name, test := range map[string]struct {
		config, command string
		back            bool
		says            string
	}{
		"kept": {"", "./fix.py " + user + " 'written by B'", false, "The change is kept"},
		"put back": {"gate: {allowed_write_paths: [.]}\nsessions: {uncovered: put_back}\n",
			"python3 - <<'E'\nimport os\nos.chdir('app/models')\nopen('user.rb','w').write('written by B\\n')\nE", true, "The holder's version has been restored"},
		"waited for": {"gate: {allowed_write_paths: [.]}\nsessions: {uncovered: put_back}\n",
			"until grep -q 'written by B' " + user + "; do sleep 1; done", false, "a person's editor could have made the same change"},
		"not spelled": {"gate: {allowed_write_paths: [.]}\nsessions: {uncovered: put_back}\n", "./fix.py " + user, false, "a person's editor could have made the same change"},
		"not named":   {"gate: {allowed_write_paths: [.]}\nsessions: {uncovered: put_back}\n", "./fix.py", false, "a person's editor leaves the same traces"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.write("lockkeeper.yaml", test.config)
			s.edits("A", user, "by A\n")
			s.passes(s.bash("B", "PreToolUse", test.command))
			s.write(user, "written by B\n")
			r := s.passes(s.bash("B", "PostToolUse", test.command))
			s.says(r, "UNCOVERED "+user, test.says, "systemMessage", "rescue show")
			if got := s.read(user); (got == "by A\n") != test.back {
				t.Errorf("it holds %q", got)
			}
			if again := s.passes(s.bash("B", "PostToolUse", test.command)); strings.Contains(again.out, "UNCOVERED") {
				t.Error("told twice")
			}
			kept, err := session.Rescued(t.Context(), s.open())
			if err != nil || len(kept) == 0 || kept[0].Path != user {
				t.Errorf("%+v %v", kept, err)
			}
		})
	}
}

// The holder's own work is not reported. Removals by others are.
func TestComparison(t *testing.T) {
	s := newStage(t)
	s.passes(s.edit("A", user))
	s.passes(s.bash("B", "PreToolUse", "make"))
	s.write(user, "by A\n")
	s.passes(s.edited("A", user))
	if r := s.passes(s.bash("B", "PostToolUse", "make")); strings.Contains(r.out, "UNCOVERED") {
		t.Errorf("A's own work: %s", r.out)
	}
	s.passes(s.bash("B", "PreToolUse", "make clean"))
	if err := os.Remove(s.at(user)); err != nil {
		t.Fatal(err)
	}
	s.says(s.passes(s.bash("B", "PostToolUseFailure", "make clean")), "UNCOVERED "+user+" was removed")
	// A command that continues in the background is compared at later calls.
	s.write(user, "by A\n")
	s.passes(s.edited("A", user))
	s.passes(s.bash("B", "PreToolUse", "./later.sh &"))
	s.passes(s.bash("B", "PostToolUse", "./later.sh &"))
	s.write(user, "by B, later\n")
	s.says(s.passes(s.claude("B", "Stop", "", nil)), "UNCOVERED "+user)
}

// Git commands acquire the .git target, and no other session can write meanwhile.
func TestGit(t *testing.T) {
	s := newStage(t)
	s.passes(s.edit("A", user))
	s.refuses(s.bash("B", "PreToolUse", "git stash"), "git stash: it rewrites the files or the branch that others work on: "+user)
	s.passes(s.bash("A", "PreToolUse", "git stash"))
	s.refuses(s.edit("B", post), "git is rewriting files")
	s.refuses(s.bash("B", "PreToolUse", "git rebase main"))
	s.passes(s.bash("A", "PostToolUse", "git stash"))
	s.passes(s.edit("B", post))
	s.refuses(s.bash("A", "PreToolUse", "git commit --amend"))
	s.passes(s.bash("A", "PreToolUse", "git commit -m x "+user))
}

// The end of a turn releases everything in each codebase, even if the files of others could not
// be compared. Findings in other codebases are still reported.
func TestStopAfterFailure(t *testing.T) {
	for name, breaks := range map[string][]bool{"both": {true, true}, "one": {true, false}} {
		t.Run(name, func(t *testing.T) {
			s, other := newStage(t), newStage(t)
			stages := []*stage{other, s}
			edit := func(session, file string) said {
				return s.claude(session, "PreToolUse", "Edit", map[string]any{"file_path": file})
			}
			for _, at := range stages {
				s.passes(edit("A", at.at(user)))
				s.passes(edit("B", at.at(post)))
			}
			s.passes(s.bash("B", "PreToolUse", "make -C "+other.dir))
			for i, at := range stages {
				at.write(user, "by B\n")
				if breaks[i] {
					at.write(".lockkeeper/rescue", "no directory\n") // so that nothing can be kept
				}
			}
			r := s.claude("B", "Stop", "", nil)
			if r.code != 1 || !strings.Contains(r.err, "rescue") || strings.Contains(r.err, "UNCOVERED") == breaks[1] {
				t.Errorf("ended with %d: %s", r.code, r.all())
			}
			for _, at := range stages {
				s.passes(edit("A", at.at(post)))
			}
		})
	}
}

// A process keeps its locks over /clear. Another process does not get them.
func TestClear(t *testing.T) {
	s := newStage(t)
	s.passes(s.edit("A", user))
	s.passes(s.claude("A", "SessionEnd", "clear", nil))
	s.passes(s.claude("A2", "SessionStart", "", nil))
	s.refuses(s.edit("B", user))
	s.passes(s.edit("A2", user))
}

// A patch that was deferred lands when the file is free, and its owner is told.
func TestDeferred(t *testing.T) {
	s := newStage(t)
	s.write("lockkeeper.yaml", "gate: {allowed_write_paths: [.]}\n")
	s.passes(s.edit("A", user))
	s.refuses(s.edit("B", user))
	queue := deferred.Open(s.open())
	patch := deferred.Patch{Path: s.at(user), By: "heron", Session: "B"}
	if _, err := queue.Put(t.Context(), patch, []byte("@@ -2 +2,2 @@\n end\n+# by B\n"), false); err != nil {
		t.Fatal(err)
	}
	patch.Path = s.at(post)
	patch.Base = lockkeeper.Version{Kind: lockkeeper.File, Mode: 0o644, Sum: sha256.Sum256([]byte(s.read(post)))}
	s.passes(s.edit("A", post))
	patch.Base = lockkeeper.Version{Kind: lockkeeper.File, Sum: sha256.Sum256([]byte(s.read(post)))}
	if _, err := queue.Put(t.Context(), patch, []byte("whole by B\n"), true); err != nil {
		t.Fatal(err)
	}
	if ended, err := queue.Land(t.Context()); err != nil || len(ended) != 0 {
		t.Fatalf("%v %v", ended, err)
	}
	s.write(user, "# by A\nclass User\nend\n")
	s.passes(s.edited("A", user))
	s.write(post, "by A\n")
	s.passes(s.claude("A", "Stop", "", nil))
	r := s.passes(s.claude("B", "UserPromptSubmit", "go on", nil))
	s.says(r, "LANDED your deferred patch of "+user, "NOT LANDED your deferred patch of "+post, "rescue show")
	if got := s.read(user); got != "# by A\nclass User\nend\n# by B\n" {
		t.Errorf("%q", got)
	}
	if got := s.read(post); got != "by A\n" {
		t.Errorf("%q", got)
	}
	if r := s.passes(s.claude("B", "UserPromptSubmit", "go on", nil)); strings.Contains(r.out, "LANDED") {
		t.Error("told twice")
	}
}

// While the checks are off, every call shows it.
func TestOff(t *testing.T) {
	s := newStage(t)
	registry := session.Open(s.open())
	if _, err := registry.SwitchOff(t.Context(), personActor, "a test", minute); err != nil {
		t.Fatal(err)
	}
	s.passes(s.edit("A", user))
	s.says(s.passes(s.edit("B", user)), "LOCKKEEPER IS OFF until", "systemMessage")
	if _, err := registry.SwitchOff(t.Context(), personActor, "", minute); err == nil {
		t.Error("switched off twice")
	}
	if ended, err := registry.SwitchOn(t.Context()); err != nil || !ended {
		t.Fatal(ended, err)
	}
	s.passes(s.edit("A", user))
	s.refuses(s.edit("B", user))
}

// The same file in two work trees is warned about.
func TestWorktrees(t *testing.T) {
	s := newStage(t)
	s.git("init", "-q")
	s.git("add", "app")
	s.git("commit", "-q", "-m", "x")
	s.git("worktree", "add", "-q", "trees/one")
	s.passes(s.edit("A", user))
	s.says(s.passes(s.edit("B", "trees/one/"+user)), "WARNING trees/one/"+user, "in another work tree")
}

// If a holder reads its file after another program overwrote it, the holder is told and its own
// version is kept.
//
// shows: GP-5
func TestDisturbedByReading(t *testing.T) {
	s := newStage(t)
	s.write(user, "one\n")
	s.edits("A", user, "mine\n")
	s.write(user, "an editor's\n")
	s.says(s.claude("A", "PostToolUse", "Read", map[string]any{"file_path": s.at(user)}), "DISTURBED "+user, "Your version is kept: lockkeeper rescue show")
}

// Subagents work at the same time in one session. Until a subagent ends, neither the other
// subagents nor the main agent can write its files. All share what the session held before.
func TestInnerAgents(t *testing.T) {
	s := newStage(t)
	const user, post = "app/models/user.rb", "app/models/post.rb"
	inner := func(id, event, tool string, input map[string]any) said {
		return s.call("claude-code", map[string]any{"session_id": "s1", "agent_id": id, "agent_type": "general-purpose", "hook_event_name": event,
			"tool_name": tool, "tool_use_id": "toolu_" + id, "tool_input": input})
	}
	edit := func(id, name string) said {
		return inner(id, "PreToolUse", "Edit", map[string]any{"file_path": s.at(name), "old_string": "a", "new_string": "b"})
	}
	s.edits("s1", post, "class Post # outer\nend\n")
	s.passes(edit("a1", user))
	s.passes(edit("a1", post))
	s.refuses(edit("a2", user), "another subagent of this session (general-purpose) is working on it")
	s.refuses(inner("a2", "PreToolUse", "Bash", map[string]any{"command": "echo x > " + post}), "another subagent of this session")
	s.refuses(s.edit("s1", user), "another subagent of this session")
	s.refuses(s.edit("s2", user), "held by")
	s.passes(inner("a2", "SubagentStop", "", nil))
	s.refuses(edit("a3", user), "another subagent of this session")
	s.passes(inner("a1", "SubagentStop", "", nil))
	s.passes(edit("a2", user))
	s.refuses(s.edit("s1", user), "another subagent of this session")
	s.passes(s.claude("s1", "UserPromptSubmit", "go on", nil)) // an interruption ends them
	s.passes(s.edit("s1", user))
	s.refuses(s.edit("s2", user), "held by")
}

// A subagent cannot write a file that another subagent works on. This holds even if the command
// names only the directory, or names the file in source text.
//
// shows: GP-5 CF-15
func TestSubagentsAndDirectories(t *testing.T) {
	s := newRepository(t)
	subagent := func(id, command string) said {
		return s.call("claude-code", map[string]any{"session_id": "s1", "agent_id": id, "hook_event_name": "PreToolUse",
			"tool_name": "Bash", "tool_use_id": "toolu_" + id, "tool_input": map[string]any{"command": command}})
	}
	s.reads("s1", user)
	s.reads("s1", post)
	s.passes(subagent("a1", "sed -i s/a/b/ "+user))
	for _, command := range []string{"git stash", "git reset --hard", "git checkout .", "git restore app", "git switch -f main", "git switch -c topic", "rm -rf app/models", "mv app other",
		"find app -delete", "python3 -c \"import os; f='" + user + "'; os.remove(f)\""} {
		s.refuses(subagent("a2", command), "another subagent of this session", user)
		s.refuses(s.bash("s1", "PreToolUse", command), "another subagent of this session", user)
	}
	for _, command := range []string{"sed -i s/a/b/ " + post, "rm -rf test"} {
		s.passes(subagent("a2", command))
	}
	s.passes(s.call("claude-code", map[string]any{"session_id": "s1", "agent_id": "a1", "hook_event_name": "SubagentStop"}))
	s.passes(s.call("claude-code", map[string]any{"session_id": "s1", "agent_id": "a2", "hook_event_name": "SubagentStop"}))
	s.passes(s.bash("s1", "PreToolUse", "rm -rf app/models/user.rb"))
}

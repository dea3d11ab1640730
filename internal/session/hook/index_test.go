package hook_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// The git index is shared. A session can neither stage nor commit a file that another session
// holds, and is told whose it is. Its own changes stay free.
//
// shows: GP-5 CF-15
func TestIndexOfOthers(t *testing.T) {
	s := newRepository(t)
	s.passes(s.claude("A", "UserPromptSubmit", "rate-limit login", nil))
	s.edits("A", user, "class User # half an edit of A\n")
	s.edits("A", "app/models/new_by_a.rb", "class New\n")
	s.edits("B", post, "class Post # of B\n")
	for _, command := range []string{
		"git add -A", "git add .", "git add -u", "git add app/models", "git add " + user, "git add 'app/*.rb'", "git add --all -- app", "git stage .",
		"git add -p", "cd app && git add models", "git -C app add models/user.rb", "git add app/models/new_by_a.rb", "git add --pathspec-from-file=list",
		"git commit -am x", "git commit -a -m x", "git commit --all --message x", "git commit -m x " + user, "git commit -m x -- app", "git commit -o app -m x",
		"git add -A && git commit -m x", "sh -c 'git add -A && git commit -qm x'", "git add $FILES", "git update-index --add app/models/new_by_a.rb",
		"git stash", "git stash push", "git rm -f " + user, "git mv " + user + " app/u.rb", "git rm -r -f app",
	} {
		t.Run(command, func(t *testing.T) {
			r := s.bash("B", "PreToolUse", command)
			if r.code != 2 || !strings.Contains(r.err, `"rate-limit login"`) {
				t.Errorf("ended with %d: %s", r.code, r.all())
			}
			s.passes(s.bash("B", "PostToolUse", command))
		})
	}
	s.refuses(s.bash("B", "PreToolUse", "git add -A"), "uncommitted work of others", "and 1 more", `next: lockkeeper commit -m "what changed"`)
	for _, command := range []string{"git add " + post, "git add -n .", "git add app/views", "git commit -m 'add app' " + post, "git commit -m x", "git add --dry-run -A",
		"git status", "git commit --dry-run -a", "git restore --staged " + post, "git reset -- " + post, "git add -N " + post, "git commit -qm " + user} {
		t.Run(command, func(t *testing.T) {
			s.passes(s.bash("B", "PreToolUse", command))
			s.passes(s.bash("B", "PostToolUse", command))
		})
	}
	s.passes(s.bash("A", "PreToolUse", "git add "+user))
	s.git("add", user) // A stages its own file
	s.passes(s.bash("A", "PostToolUse", "git add "+user))
	for _, command := range []string{"git commit -m x", "git commit -i -m x " + post, "git restore --staged " + user, "git reset -- " + user, "git reset -q HEAD -- app"} {
		s.refuses(s.bash("B", "PreToolUse", command), user)
	}
	s.passes(s.bash("B", "PreToolUse", "git commit -m x "+post)) // what A staged stays out
	s.passes(s.bash("B", "PostToolUse", "git commit -m x "+post))
	s.passes(s.claude("A", "Stop", "", nil))
	s.passes(s.bash("B", "PreToolUse", "git add -A && git commit -m x"))
}

// A file that another subagent of the session works on is not committed either.
func TestIndexOfSubagents(t *testing.T) {
	s := newRepository(t)
	call := func(inner, event, tool string, input map[string]any) said {
		c := map[string]any{"session_id": "A", "hook_event_name": event, "tool_name": tool, "tool_use_id": "t" + inner, "tool_input": input}
		if inner != "" {
			c["agent_id"], c["agent_type"] = inner, "general-purpose"
		}
		return s.call("claude-code", c)
	}
	s.passes(call("one", "PreToolUse", "Edit", map[string]any{"file_path": s.at(user)}))
	s.write(user, "class User # half an edit\n")
	s.passes(call("one", "PostToolUse", "Edit", map[string]any{"file_path": s.at(user)}))
	s.refuses(call("two", "PreToolUse", "Bash", map[string]any{"command": "git add -A"}), user, "another subagent")
	s.passes(call("one", "PreToolUse", "Bash", map[string]any{"command": "git add -A"}))
}

// A session claims a file before the repository has a second work tree. Sessions that change the
// same file in that work tree learn of the claim, even if it is outside the codebase.
//
// shows: GP-5
func TestWorktreeMadeLater(t *testing.T) {
	s := newRepository(t)
	s.passes(s.edit("A", user))
	s.git("worktree", "add", "-q", "trees/one")
	s.says(s.passes(s.edit("B", "trees/one/"+user)), "WARNING trees/one/"+user, "in another work tree, "+s.dir)
	outside := filepath.Join(t.TempDir(), "two")
	s.git("worktree", "add", "-q", outside)
	edit := func(session, file string) said {
		return s.claude(session, "PreToolUse", "Edit", map[string]any{"file_path": file, "old_string": "a", "new_string": "b"})
	}
	s.says(s.passes(edit("C", filepath.Join(outside, user))), "WARNING", "in another work tree, "+s.dir)
	s.passes(edit("C", filepath.Join(outside, post)))
	s.says(s.passes(s.edit("A", post)), "WARNING "+post, "in another work tree, "+outside)
	if r := s.passes(edit("D", filepath.Join(t.TempDir(), "free"))); r.out != "" {
		t.Errorf("outside every repository: %s", r.all())
	}
}

// A session whose file another session's command changed is told which session that was.
//
// shows: GP-5
func TestWriterIsNamed(t *testing.T) {
	s := newStage(t)
	s.edits("A", user, "class User # by A\n")
	s.passes(s.bash("B", "PreToolUse", "./fix.py"))
	s.write(user, "class User # by B\n")
	s.says(s.passes(s.bash("B", "PostToolUse", "./fix.py")), "UNCOVERED "+user)
	r := s.passes(s.claude("A", "PostToolUse", "Read", map[string]any{"file_path": s.at(user)}))
	s.says(r, "DISTURBED "+user, "without a lock, by session ")
	s.edits("A", user, "class User # by A again\n")
	s.passes(s.bash("B", "PreToolUse", "sleep 100"))
	s.write(user, "class User # by an editor, or by B\n")
	r = s.passes(s.claude("A", "PostToolUse", "Read", map[string]any{"file_path": s.at(user)}))
	s.says(r, "DISTURBED "+user, "by a command of session ", "or an editor")
}

// A commit of held files by a program that the command does not spell out is told to the session
// and to the holder. The holder's own commit is told to nobody.
//
// shows: GP-5
func TestCommitsAreToldAfterwards(t *testing.T) {
	s := newRepository(t)
	s.edits("A", user, "class User # half an edit of A\n")
	s.edits("B", post, "class Post # of B\n")
	s.passes(s.bash("B", "PreToolUse", "make release"))
	s.git("commit", "-qam", "all")
	s.says(s.passes(s.bash("B", "PostToolUse", "make release")), "COMMITTED "+user+" is in commit ", "next: git show --stat ",
		"COMMITTED "+post+", which you hold, is in commit ", "made while your command ran, by the command or by another program. Finish")
	s.says(s.passes(s.bash("A", "PreToolUse", "ls")), "COMMITTED "+user+", which you hold, is in commit ", ", which you did not make")
	silent := func(r said) {
		t.Helper()
		if s.passes(r); strings.Contains(r.all(), "COMMITTED") {
			t.Error(r.all())
		}
	}
	silent(s.bash("A", "PostToolUse", "ls"))

	s.edits("A", user, "class User # whole\n")
	s.passes(s.bash("B", "PreToolUse", "make release"))
	s.passes(s.bash("A", "PreToolUse", "git commit -qam own"))
	s.git("commit", "-qam", "own")
	silent(s.bash("A", "PostToolUse", "git commit -qam own"))
	silent(s.bash("B", "PostToolUse", "make release"))
	silent(s.bash("A", "PreToolUse", "ls"))
}

package hook_test

import "testing"

// What another session wrote while a command of this one ran is not this one's to take away.
//
// shows: GP-5
func TestDiscardsOfOthersBesideACommand(t *testing.T) {
	s := newRepository(t)
	const tests, mine = "make test", "made/by/tests.txt"
	s.reads("A", user)
	s.passes(s.bash("A", "PreToolUse", tests))
	s.edits("B", post, "class Post # by B\nend\n")
	s.passes(s.replace("B", "new.txt"))
	s.write("new.txt", "by B\n")
	s.passes(s.claude("B", "PostToolUse", "Write", map[string]any{"file_path": s.at("new.txt")}))
	s.passes(s.claude("B", "Stop", "", nil))
	s.write(mine, "by the tests\n")
	s.passes(s.bash("A", "PostToolUse", tests))
	for command, file := range map[string]string{"git checkout " + post: post, "git stash": post, "git reset --hard": post, "rm new.txt": "new.txt"} {
		s.refuses(s.bash("A", "PreToolUse", command), file, "that you neither created nor read")
	}
	s.passes(s.bash("A", "PreToolUse", "rm -r made"))
	s.passes(s.claude("A", "Stop", "", nil))
	s.passes(s.bash("B", "PreToolUse", "rm new.txt"))
}

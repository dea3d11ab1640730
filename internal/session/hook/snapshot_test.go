package hook_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockkeeper/internal/session"
)

// removes removes a file, as a command would.
func (s *stage) removes(name string) {
	s.t.Helper()
	if err := os.Remove(s.at(name)); err != nil {
		s.t.Fatal(err)
	}
}

// keeps checks that the rescue shelf has exactly these contents for a path.
func (s *stage) keeps(name string, want ...string) {
	s.t.Helper()
	if got := s.rescued()[name]; !slices.Equal(got, want) {
		s.t.Errorf("kept of %s: %q, want %q", name, got, want)
	}
}

// snapshots checks the number of open snapshots. Only commands in progress have one.
func (s *stage) snapshots(want int) {
	s.t.Helper()
	list, err := session.Snapshots(s.open()).List()
	if err != nil || len(list) != want {
		s.t.Errorf("%d snapshots are open, want %d: %v", len(list), want, err)
	}
}

// A command that removes nothing leaves no rescue entry. A command that only reads needs no
// snapshot.
func TestHarmlessCommands(t *testing.T) {
	s := newRepository(t)
	for _, command := range []string{"ls -la; cat notes/plan.txt | head -3", "git status && git diff", "grep -rn User app", "sed -n '1,20p' " + user,
		"sed -e 's/a/b/g; 3d' " + user, "find . -name '*.rb' -type f", "find . -name '*.rb' -exec grep -l User {} +", "ls | xargs wc -l", "mkdir -p new && touch new/a",
		"echo x >> log.txt", "cd app && ls $(pwd)", "for f in *; do echo $f; done", "if [ -f x ]; then cat x; fi", "awk '{ print $1 }' " + user, "go vet ./... | tail -5",
		"rm dist/out.js", "command -v go", "cat $(git ls-files | head -1)", "tar tf a.tar", "rm -rf new", "LC_ALL=C ls",
		"x=app; cat $x/models/user.rb", "git -C app log --oneline -5 -- models", "git diff --stat HEAD~0 2>&1 | cat", "[ -f x ] || echo $((1 + 2))", "rg -n User app; echo $?",
		"sed -n '/[a-z]/p' " + user, "set -euo pipefail; ls", "read -r x < " + user + "; echo \"$x\"", "sort -u " + user + " | uniq -c", "timeout 5 ls | xargs -n 1 echo"} {
		s.passes(s.bash("A", "PreToolUse", command))
		if s.snapshots(0); t.Failed() {
			t.Fatalf("%s is opaque", command)
		}
		s.passes(s.bash("A", "PostToolUse", command))
	}
	for _, command := range []string{"make", "go test ./...", "./run", "python3 x.py", "npm run build", "find . -exec ./x {} +", "sed 's/a/b/w out' " + user, "ls | xargs ./x",
		"PATH=. ls", "source ./env", "git commit -m x", "awk '{ print > $1 }' " + user, "bash x.sh", "./ls", "tar xf a.tar", "this is ( no shell"} {
		s.passes(s.bash("A", "PreToolUse", command))
		s.snapshots(1)
		if r := s.passes(s.bash("A", "PostToolUse", command)); r.out != "" {
			t.Errorf("%s: %s", command, r.out)
		}
		s.snapshots(0)
	}
	if kept := s.rescued(); len(kept) != 0 {
		t.Errorf("kept %v", kept)
	}
}

// The session's own work, and concurrent work of other sessions, is not reported as lost.
func TestOwnWorkIsNotLost(t *testing.T) {
	s := newRepository(t)
	s.passes(s.bash("A", "PreToolUse", "./build"))
	s.write("out.txt", "made\n")
	s.passes(s.bash("A", "PostToolUse", "./build"))
	s.edits("A", post, "class Post # by A\nend\n")
	s.edits("B", "app/b.rb", "by B\n")
	s.passes(s.bash("A", "PreToolUse", "./clean"))
	s.removes("out.txt")
	s.write(post, "formatted\n")
	s.edits("B", "app/b.rb", "by B, again\n")
	if r := s.passes(s.bash("A", "PostToolUse", "./clean")); strings.Contains(r.all(), "rescue restore") {
		t.Errorf("told %s", r.all())
	}
	s.keeps("out.txt")
	s.keeps("app/b.rb")
}

// A file that a person saves during a command does not become the session's. Neither rm nor a
// command with an unknown effect can remove it.
func TestSavedWhileACommandRan(t *testing.T) {
	s := newRepository(t)
	s.passes(s.bash("A", "PreToolUse", "./test"))
	s.write("notes/plan.txt", "another plan\n")
	s.says(s.passes(s.bash("A", "PostToolUse", "./test")), "OVERWRITTEN notes/plan.txt", "lockkeeper rescue restore ")
	s.keeps("notes/plan.txt", "a plan\n")
	s.refuses(s.bash("A", "PreToolUse", "rm notes/plan.txt"), "that you neither created nor read")
	_, after := s.tries("A", "find notes -name '*.txt' -delete")
	s.says(after, "REMOVED notes/plan.txt", "lockkeeper rescue restore ")
	s.keeps("notes/plan.txt", "a plan\n", "another plan\n")
}

// A moved file is not lost, and does not become the session's at its new path.
func TestMovedIsNotLost(t *testing.T) {
	s := newRepository(t)
	_, after := s.tries("A", "mv notes elsewhere")
	if strings.Contains(after.all(), "rescue") || s.read("elsewhere/plan.txt") != "a plan\n" {
		t.Errorf("told %s", after.all())
	}
	s.refuses(s.bash("A", "PreToolUse", "rm elsewhere/plan.txt"), "that you neither created nor read")
	s.refuses(s.bash("A", "PreToolUse", "rm -rf elsewhere"), "that you neither created nor read")
}

// A background command is compared at later calls. A command without a reported end is compared
// at the end of the turn, or, if its session is gone, when the shelf is listed.
func TestSnapshotOutlivesTheCall(t *testing.T) {
	t.Run("background", func(t *testing.T) {
		s := newRepository(t)
		const command = "./later &"
		s.passes(s.bash("A", "PreToolUse", command))
		s.passes(s.bash("A", "PostToolUse", command))
		s.snapshots(1)
		s.removes("notes/plan.txt")
		s.says(s.passes(s.bash("A", "PostToolUse", "ls")), "REMOVED notes/plan.txt")
		if r := s.claude("A", "Stop", "", nil); strings.Contains(r.all(), "REMOVED") {
			t.Errorf("told twice: %s", r.all())
		}
		s.keeps("notes/plan.txt", "a plan\n")
	})
	t.Run("no end", func(t *testing.T) {
		s := newRepository(t)
		s.passes(s.bash("A", "PreToolUse", "./x"))
		s.removes("notes/plan.txt")
		s.says(s.claude("A", "UserPromptSubmit", "go on", nil), "REMOVED notes/plan.txt")
		s.keeps("notes/plan.txt", "a plan\n")
	})
	t.Run("killed", func(t *testing.T) {
		s := newRepository(t)
		s.inProcess("A", "./x")
		s.removes("notes/plan.txt")
		s.write(".env", "SECRET=2\n")
		s.keeps("notes/plan.txt", "a plan\n")
		s.keeps(".env", "SECRET=1\n")
		s.snapshots(0)
	})
}

// Without git, all files count as uncommitted.
func TestSnapshotWithoutGit(t *testing.T) {
	s := newStage(t)
	s.write("node_modules/x/index.js", "foreign\n")
	_, after := s.tries("A", "find . -name 'user*' -delete; rm -rf $(echo node_modules)")
	s.says(after, "REMOVED "+user, "REMOVED test/models/user_test.rb")
	s.keeps(user, "class User\nend\n")
	s.keeps("node_modules/x/index.js")
}

// Uncommitted files of nested repositories are copied as well.
func TestSnapshotOfInnerRepository(t *testing.T) {
	s := newRepository(t)
	s.git("init", "-q", "inner")
	s.write("inner/tracked", "committed\n")
	s.git("-C", "inner", "add", ".")
	s.git("-C", "inner", "commit", "-qm", "x")
	s.write("inner/tracked", "edited\n")
	s.write("inner/new", "new\n")
	_, after := s.tries("A", "find inner -maxdepth 1 -type f -exec rm {} +; find . -path './inner/*' -type f -maxdepth 2 -delete")
	if after.code == 0 && after.out != "" {
		s.says(after, "REMOVED inner/tracked", "REMOVED inner/new")
	}
	for _, name := range []string{"inner/tracked", "inner/new"} {
		if _, err := os.Stat(s.at(name)); err != nil && len(s.rescued()[name]) != 1 {
			t.Errorf("%s is lost: %s", name, after.all())
		}
	}
}

// If another program removes a file while two sessions run commands, both have a copy. Subagents
// of one session share its snapshots.
func TestSnapshotsOfSeveral(t *testing.T) {
	s := newRepository(t)
	for _, session := range []string{"A", "B"} {
		s.passes(s.bash(session, "PreToolUse", "./x"))
	}
	inner := func(id, event string) said {
		return s.call("claude-code", map[string]any{"session_id": "A", "agent_id": id, "agent_type": "general-purpose", "hook_event_name": event,
			"tool_name": "Bash", "tool_use_id": "toolu_" + id, "tool_input": map[string]any{"command": "./inner"}})
	}
	s.passes(inner("a1", "PreToolUse"))
	s.snapshots(3)
	s.removes("notes/plan.txt")
	s.says(inner("a1", "PostToolUse"), "REMOVED notes/plan.txt")
	if r := s.bash("A", "PostToolUse", "./x"); strings.Contains(r.all(), "REMOVED") {
		t.Errorf("told twice: %s", r.all())
	}
	s.says(s.bash("B", "PostToolUse", "./x"), "REMOVED notes/plan.txt")
	s.snapshots(0)
	for _, content := range s.rescued()["notes/plan.txt"] {
		if content != "a plan\n" {
			t.Errorf("kept %q", content)
		}
	}
}

// Codex and Gemini CLI get the same messages.
func TestSnapshotOfOtherHosts(t *testing.T) {
	for host, call := range map[string][3]string{"codex": {"PreToolUse", "PostToolUse", "exec_command"}, "gemini": {"BeforeTool", "AfterTool", "run_shell_command"}} {
		t.Run(host, func(t *testing.T) {
			s := newRepository(t)
			say := func(event string) said {
				input := map[string]any{"command": "./x"}
				return s.call(host, map[string]any{"session_id": "A", "hook_event_name": event, "tool_name": call[2], "tool_input": input})
			}
			s.passes(say(call[0]))
			s.removes("notes/plan.txt")
			s.says(say(call[1]), "REMOVED notes/plan.txt", "lockkeeper rescue restore ")
			s.keeps("notes/plan.txt", "a plan\n")
		})
	}
}

// Files that cannot be copied are reported once. A command that certainly removes unknown files
// is refused if these may be among them.
func TestNotKept(t *testing.T) {
	s := newRepository(t)
	if err := os.Truncate(s.touch("data/large.bin"), 40<<20); err != nil {
		t.Fatal(err)
	}
	s.says(s.passes(s.bash("A", "PreToolUse", "make")), "NOT KEPT data/large.bin", "larger than 32 MiB")
	s.passes(s.bash("A", "PostToolUse", "make"))
	if r := s.passes(s.bash("A", "PreToolUse", "make again")); strings.Contains(r.out, "NOT KEPT") {
		t.Errorf("told twice: %s", r.out)
	}
	s.passes(s.bash("A", "PostToolUse", "make again"))
	s.refuses(s.bash("A", "PreToolUse", "find . -name '*.bin' -delete"), "find -delete", "data/large.bin", "cannot be copied first")
	s.refuses(s.bash("A", "PreToolUse", "ls data/* | xargs rm"), "rm: ", "data/large.bin")
	s.refuses(s.bash("A", "PreToolUse", "rm -r $(cat list)"), "data/large.bin")
	s.refuses(s.bash("A", "PreToolUse", "echo x > $(cat name)"), "data/large.bin")
	s.passes(s.bash("A", "PreToolUse", "find notes -name '*.bin' -delete"))
	s.passes(s.bash("A", "PostToolUse", "find notes -name '*.bin' -delete"))
}

// If nothing can be copied, the refusal suggests no command that touches all files at once.
func TestNothingKept(t *testing.T) {
	s := newRepository(t)
	s.write(".lockkeeper/snapshots", "not a directory\n")
	s.says(s.passes(s.bash("A", "PreToolUse", "make")), "NOT KEPT: no uncommitted file was copied: ")
	s.passes(s.bash("A", "PostToolUse", "make"))
	r := s.bash("A", "PreToolUse", "find . -name '*.txt' -delete")
	s.refuses(r, "find -delete", "cannot be copied first", "next: lockkeeper doctor")
	if strings.Contains(r.all(), "git add") {
		t.Errorf("it advises to stage files: %s", r.all())
	}
}

// inProcess begins a command in a session whose process then ends.
func (s *stage) inProcess(session, command string) {
	s.t.Helper()
	hook, out, errs := s.command("claude-code", map[string]any{"session_id": session, "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": "toolu_Bash",
		"tool_input": map[string]any{"command": command}})
	cmd := exec.CommandContext(s.t.Context(), "timeout", "60", hook.Path) // timeout runs the hook as a child process
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = hook.Dir, hook.Env, hook.Stdin, hook.Stdout, hook.Stderr
	if err := cmd.Run(); err != nil {
		s.t.Fatal(err, out, errs)
	}
}

// touch creates an empty file and returns its absolute path.
func (s *stage) touch(name string) string {
	s.t.Helper()
	s.write(name, "")
	return s.at(name)
}

// If very many files are removed at once, all of them are kept.
func TestVeryManyLost(t *testing.T) {
	s := newRepository(t)
	const many = 450
	for i := range many {
		s.write(fmt.Sprintf("drafts/%d/draft.txt", i), fmt.Sprintln("draft", i))
	}
	_, after := s.tries("A", "find . -name 'draft.txt' -delete")
	s.says(after, "REMOVED or overwritten while your command ran: 450 files, such as drafts/", "lockkeeper rescue list")
	if lines := strings.Count(after.out, "REMOVED"); lines > 2 { // for the agent and the person
		t.Errorf("%d lines: %s", lines, after.out)
	}
	kept := s.rescued()
	for i := range many {
		name := fmt.Sprintf("drafts/%d/draft.txt", i)
		if got := kept[name]; len(got) != 1 || got[0] != fmt.Sprintln("draft", i) {
			t.Fatalf("kept of %s: %q", name, got)
		}
	}
	if left, err := filepath.Glob(s.at(".lockkeeper/snapshots/*.json")); err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// A codebase in a directory that an outer repository ignores does not itself count as ignored.
func TestSnapshotInIgnoredDirectory(t *testing.T) {
	s := newStage(t)
	around := filepath.Dir(s.dir)
	s.git("init", "-q", around)
	if err := os.WriteFile(filepath.Join(around, ".gitignore"), []byte("repo\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, after := s.tries("A", "find . -name 'user.rb' -delete")
	s.says(after, "REMOVED "+user)
	s.keeps(user, "class User\nend\n")
}

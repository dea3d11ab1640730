//go:build agents

package agents_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"lockkeeper/internal/agent/scriptedapi"
)

// answer returns a step with a structured answer.
func answer(value map[string]any) scriptedapi.Step {
	return use(scriptedapi.Tool{Name: "StructuredOutput", Input: value})
}

// The program runs a plan with the real Claude Code. Declared changes land, whichever tool
// wrote them. Undeclared changes become gaps. A shell cannot write into the shared tree.
//
// shows: GP-5 PL-27 SW-75
func TestRunWithClaude(t *testing.T) {
	machine(t)
	var shared string
	s := newStage(t, func(root string) []scriptedapi.Play {
		shared = filepath.Join(root, "shared")
		return []scriptedapi.Play{
			{Prompt: `^# task \S*posts`, Steps: []scriptedapi.Step{
				use(scriptedapi.Bash(`cat app/posts.rb && printf 'class Posts\n  # by shell\nend\n' > app/posts.rb`)),
				use(scriptedapi.Bash(`echo owned > ` + shared + `/app/users.rb; git -C ` + shared + ` reset -q --hard; echo tried`)),
				use(scriptedapi.Bash(`printf 'class Users\n  # not declared\nend\n' > app/users.rb`)),
				answer(map[string]any{"summary": "posts are done"}),
				{Text: "done"},
			}},
			{Prompt: `^# task \S*notes`, Steps: []scriptedapi.Step{
				use(scriptedapi.Tool{Name: "Write", Input: map[string]any{"file_path": "notes/new.md", "content": "by a tool\n"}}),
				answer(map[string]any{"summary": "notes are done"}),
				{Text: "done"},
			}},
			{Prompt: `^# verify `, Steps: []scriptedapi.Step{
				answer(map[string]any{"verdict": "pass", "report": "fine", "issues": []any{}}),
				{Text: "done"},
			}},
		}
	})
	if err := os.MkdirAll(shared, 0o755); err != nil {
		t.Fatal(err)
	}
	sharedTree(t, shared)
	binary := filepath.Join(s.root, "lockkeeper")
	if out, err := exec.Command("go", "build", "-o", binary, "lockkeeper/cmd/lockkeeper").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	write(t, filepath.Join(shared, "tasks.yaml"), `
tests: ["grep -q class app/posts.rb"]
tasks:
  - {name: posts, prompt: Say who did it., writes: [app/posts.rb]}
  - {name: notes, prompt: Write a note., writes: [notes/new.md], after: [posts]}
`)
	lockkeeper := func(args ...string) (string, error) {
		cmd := exec.Command(binary, args...)
		cmd.Dir = shared
		cmd.Env = append(s.environment(), "XDG_STATE_HOME="+filepath.Join(s.root, "state"), "USER=person")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := lockkeeper("init"); err != nil {
		t.Fatalf("init: %v\n%s", err, out)
	}
	write(t, filepath.Join(shared, "lockkeeper.yaml"), "gate: {allowed_write_paths: [app, notes]}\nagent: {command: ["+s.program+"], sandbox: require, caches: ["+s.home+"]}\n")
	out, err := lockkeeper("run", "--plan", "tasks.yaml", "--auto-decide", "all")
	if err != nil {
		t.Fatalf("run: %v\n%s", err, out)
	}
	for path, want := range map[string]string{
		"app/posts.rb": "class Posts\n  # by shell\nend\n",
		"app/users.rb": "class Users\nend\n",
		"notes/new.md": "by a tool\n",
		"notes.txt":    "not in the repository\n",
	} {
		if got, err := os.ReadFile(filepath.Join(shared, path)); err != nil || !bytes.Equal(got, []byte(want)) {
			t.Errorf("%s holds %q, want %q (%v)", path, got, want, err)
		}
	}
	if !strings.Contains(out, "app/users.rb") {
		t.Errorf("the gap is not told:\n%s", out)
	}
	if kept, err := lockkeeper("rescue", "list"); err != nil || !strings.Contains(kept, "app/users.rb") {
		t.Errorf("rescue list: %v\n%s", err, kept)
	}
	if left := running(t, s.mark); len(left) > 0 {
		t.Errorf("still running: %s", strings.Join(left, ", "))
	}
}

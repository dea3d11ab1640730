package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"lockkeeper/store/storetest"
)

// A codebase is a root whose locks are in PostgreSQL, with both programs installed.
type codebase struct{ dir, bin, root, store string }

func newCodebase(t *testing.T) codebase {
	t.Helper()
	database := &storetest.Database{Prefix: "hook"}
	url, err := database.URL()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(database.Drop)
	dir := t.TempDir()
	c := codebase{dir: dir, bin: filepath.Join(dir, "bin"), root: filepath.Join(dir, "root"), store: url}
	for _, args := range [][]string{{"lockkeeper"}, {"lockkeeper-hook", "-tags", "nopostgres"}} {
		build := append(append([]string{"build", "-o", c.bin + "/"}, args[1:]...), "lockkeeper/cmd/"+args[0])
		if out, err := exec.CommandContext(t.Context(), "go", build...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	if err := os.Mkdir(c.root, 0o755); err != nil {
		t.Fatal(err)
	}
	if code, out := c.run(t, "", c.bin, "lockkeeper", "init"); code != 0 {
		t.Fatal(out)
	}
	return c
}

// run runs a program of c.bin with the given PATH and returns its exit code and output.
func (c codebase) run(t *testing.T, input, path, program string, args ...string) (int, string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(c.bin, program), args...)
	cmd.Dir, cmd.Stdin = c.root, strings.NewReader(input)
	cmd.Env = []string{"HOME=" + c.dir, "XDG_STATE_HOME=" + c.dir, "PATH=" + path, "LOCKKEEPER_STORE=" + c.store}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

// write returns a call before a session writes a file of 1 MiB, which no pipe holds.
func (c codebase) write(session string) string {
	return fmt.Sprintf(`{"session_id":%q,"cwd":%q,"hook_event_name":"PreToolUse","tool_name":"Write","tool_use_id":"t","tool_input":{"file_path":%q,"content":%q}}`,
		session, c.root, filepath.Join(c.root, "app/user.rb"), strings.Repeat("x", 1<<20))
}

func TestPostgresIsLeftToTheMainProgram(t *testing.T) {
	c := newCodebase(t)
	if code, out := c.run(t, c.write("A"), os.Getenv("PATH"), "lockkeeper-hook", "claude-code"); code != 0 {
		t.Fatalf("the first session: exit %d\n%s", code, out)
	}
	code, out := c.run(t, c.write("B"), os.Getenv("PATH"), "lockkeeper-hook", "claude-code")
	if code != 0 || !strings.Contains(out, `"permissionDecision":"deny","permissionDecisionReason":"REFUSED app/user.rb: held by `) {
		t.Fatalf("the second session: exit %d\n%s", code, out)
	}

	elsewhere := filepath.Join(c.dir, "elsewhere")
	if err := errors.Join(os.Mkdir(elsewhere, 0o755), os.Rename(filepath.Join(c.bin, "lockkeeper"), filepath.Join(elsewhere, "lockkeeper"))); err != nil {
		t.Fatal(err)
	}
	if code, out := c.run(t, c.write("A"), elsewhere, "lockkeeper-hook", "claude-code"); code != 0 {
		t.Fatalf("the main program is in PATH: exit %d\n%s", code, out)
	}
	code, out = c.run(t, c.write("A"), c.bin, "lockkeeper-hook", "claude-code")
	if !strings.Contains(out, `"permissionDecision":"deny"`) || !strings.Contains(out, "nor in PATH") || !strings.Contains(out, "install lockkeeper in the directory of lockkeeper-hook") {
		t.Fatalf("the main program is missing: exit %d\n%s", code, out)
	}
}

// In PostgreSQL, two clones of one codebase share their locks. A git command changes only the clone
// in which it runs, so it is not refused because of a file held in the other clone.
func TestCloneOfItsOwn(t *testing.T) {
	c := newCodebase(t)
	call := func(session, tool, key, value string) string {
		return fmt.Sprintf(`{"session_id":%q,"cwd":%q,"hook_event_name":"PreToolUse","tool_name":%q,"tool_use_id":"t","tool_input":{%q:%q}}`, session, c.root, tool, key, value)
	}
	if code, out := c.run(t, call("A", "Edit", "file_path", filepath.Join(c.root, "user.rb")), os.Getenv("PATH"), "lockkeeper-hook", "claude-code"); code != 0 || out != "" {
		t.Fatalf("exit %d\n%s", code, out)
	}
	marker, err := os.ReadFile(filepath.Join(c.root, ".lockkeeper/space.json"))
	var is struct{ Space string }
	if err := errors.Join(err, json.Unmarshal(marker, &is)); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "git", "init", "-q", c.root).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if code, out := c.run(t, call("B", "Bash", "command", "git reset --hard"), os.Getenv("PATH"), "lockkeeper-hook", "claude-code"); !strings.Contains(out, "REFUSED git reset") {
		t.Fatalf("in the same clone: exit %d\n%s", code, out)
	}
	c.root = filepath.Join(c.dir, "clone")
	if out, err := exec.CommandContext(t.Context(), "git", "init", "-q", c.root).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if code, out := c.run(t, "", c.bin, "lockkeeper", "init", "--space", is.Space); code != 0 {
		t.Fatal(out)
	}
	if code, out := c.run(t, call("B", "Bash", "command", "git reset --hard"), os.Getenv("PATH"), "lockkeeper-hook", "claude-code"); code != 0 || out != "" {
		t.Fatalf("in the other clone: exit %d\n%s", code, out)
	}
	if _, out := c.run(t, call("B", "Edit", "file_path", filepath.Join(c.root, "user.rb")), os.Getenv("PATH"), "lockkeeper-hook", "claude-code"); !strings.Contains(out, "REFUSED user.rb: held by ") {
		t.Fatalf("the file itself: %s", out)
	}
}

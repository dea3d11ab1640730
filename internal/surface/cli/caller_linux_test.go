package cli_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// inside returns a command that runs a script as a child of a program with this name. Its environment does not
// mention an agent.
func (d *console) inside(name, script string) *exec.Cmd {
	d.t.Helper()
	program := filepath.Join(d.t.TempDir(), name)
	if err := os.Symlink("/bin/sh", program); err != nil {
		d.t.Fatal(err)
	}
	cmd := exec.Command(program, "-c", script+"\nexit $?")
	cmd.Dir, cmd.Env = d.dir, d.env
	return cmd
}

// gets runs a script inside a program, without a terminal, and checks the exit code and the output.
func (d *console) gets(want int, name, script string, words ...string) string {
	d.t.Helper()
	cmd := d.inside(name, script)
	out, _ := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != want {
		d.t.Fatalf("%s in %s ended with %d instead of %d: %s", script, name, code, want, out)
	}
	for _, w := range words {
		if !strings.Contains(string(out), w) {
			d.t.Errorf("%s in %s did not say %q: %s", script, name, w, out)
		}
	}
	return strings.TrimSpace(string(out))
}

// An agent can release, renew, extend and write under only its own grants, not those of a person or of another
// agent. A person can use all grants of their account.
//
// shows: GP-5
func TestAgentUsesItsOwnGrants(t *testing.T) {
	d := newHouse(t)
	persons := d.must(0, "lock", "acquire", "--policy", "person", "--write", "a")
	others := d.gets(0, "claude", "lockkeeper lock acquire --policy session --write b")
	d.gets(0, "claude", `g=$(lockkeeper lock acquire --policy session --write c) && lockkeeper lock renew $g && lockkeeper lock extend $g --write d && CLAUDECODE=1 lockkeeper lock release $g`)
	for grant, why := range map[string]string{persons: "a person or a session acquired this one", others: "another agent, process "} {
		for _, act := range []string{"lock release " + grant, "lock renew " + grant, "lock extend " + grant + " --write e", "gate write --grant " + grant + " a </dev/null"} {
			d.gets(1, "claude", "lockkeeper "+act, why, "lockkeeper status")
			d.gets(1, "codex", "AGENT=1 lockkeeper "+act, why)
		}
	}
	d.must(3, "lock", "check", "--write", "a", "--write", "b")
	d.must(0, "lock", "release", persons)
	d.gets(0, "sh", "lockkeeper lock release "+others)
	d.must(0, "lock", "check", "--write", "a", "--write", "b")
}

// A process that an agent started counts as the agent, regardless of its environment. The agent is a known
// program, or the process of a session.
//
// shows: GP-5
func TestAgentIsWhatAnAgentStarted(t *testing.T) {
	d := newHouse(t, "claude")
	d.must(0, "init", "claude", "--yes")
	before := d.files()
	acts := []string{"--dir . init --undo --yes", "init claude --undo=true --yes", "off 30m", "lock clear", "token add x --role admin", "login"}
	const greet = `printf '{"session_id":"A","hook_event_name":"UserPromptSubmit","prompt":"go","cwd":"%s"}' "$PWD" | lockkeeper hook claude-code >/dev/null; `
	for _, act := range acts {
		d.gets(1, "gemini", "lockkeeper "+act, "inside an agent", "gemini")
		d.gets(1, "unheard-of", greet+"lockkeeper "+act, "inside an agent", "claude-code")
	}
	// The same holds if the process has a terminal of its own.
	cmd := d.inside("claude", "lockkeeper init --undo --yes")
	cmd.Stdin, cmd.Stderr = d.tty, d.tty
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != 1 {
		t.Error(err)
	}
	if got := d.files(); got != before {
		t.Error("files were changed")
	}
}

// Without a terminal, only a script with --yes can remove hooks, and only if no session is open.
func TestUndoByAScript(t *testing.T) {
	d := newHouse(t, "claude")
	d.must(0, "init", "claude", "--yes")
	d.gets(1, "sh", "lockkeeper init --undo </dev/null", "not a terminal")
	window := d.inside("unheard-of", `printf '{"session_id":"A","hook_event_name":"UserPromptSubmit","prompt":"go","cwd":"%s"}' "$PWD" | lockkeeper hook claude-code; echo; echo ready; read end`)
	end, err := window.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := window.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := window.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "ready"; {
	}
	d.gets(1, "sh", "lockkeeper init --undo --yes </dev/null", "has worked here since", "run it in a terminal")
	end.Close()
	window.Wait()
	d.gets(0, "sh", "lockkeeper init --undo --yes </dev/null", "no longer enrolled")
}

// The base of a deferred patch is the content that its own session has read.
func TestDeferredBase(t *testing.T) {
	d := newHouse(t)
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("lockkeeper.yaml", "gate: {allowed_write_paths: [b.txt]}\n")
	write("b.txt", "two\n")
	const saw = `printf '{"session_id":"%s","hook_event_name":"PostToolUse","tool_name":"Read","tool_input":{"file_path":"%s/b.txt"},"cwd":"%s"}' B "$PWD" "$PWD" | lockkeeper hook claude-code; `
	d.gets(2, "claude", "echo B | lockkeeper defer --whole b.txt", "has not read it", "SHA-256")
	d.gets(0, "claude", saw+"echo of A >>b.txt; echo B | lockkeeper defer --whole b.txt", "could not land", "rescue show")
	d.gets(2, "codex", "echo B | lockkeeper defer --session B --whole b.txt", "has not read it")
	d.gets(0, "claude", saw+"echo B | lockkeeper defer --whole b.txt", "has landed")
	d.gets(0, "sh", `echo C | lockkeeper defer --whole --base $(sha256sum <b.txt | cut -d' ' -f1) b.txt`, "has landed")
	d.gets(5, "sh", `echo C | lockkeeper defer --whole elsewhere.txt`, "allowlist")
}

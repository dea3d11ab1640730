package scripted

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// run plays a script in this process.
func run(t *testing.T, script, prompt string, args ...string) (code int, out, log string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "script.yaml")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	return play(t, file, t.TempDir(), prompt, args...)
}

func play(t *testing.T, file, dir, prompt string, args ...string) (code int, out, log string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = Run(t.Context(), Process{Args: args, Script: file, Dir: dir, Stdin: strings.NewReader(prompt), Stdout: &stdout, Stderr: &stderr})
	return code, stdout.String(), stderr.String()
}

// An invalid script is refused before any output.
func TestStrictScripts(t *testing.T) {
	for name, test := range map[string]struct{ script, says string }{
		"an unknown key":   {"calls:\n- stepz: []", "[2:3] unknown field \"stepz\""},
		"a key twice":      {"calls:\n- match: a\n  match: b", "[3:3]"},
		"two acts":         {"calls:\n- steps:\n  - {say: a, exit: 1}", "call 1: step 1 has 2 acts"},
		"no act":           {"calls:\n- steps:\n  - {}", "step 1 has 0 acts"},
		"a type":           {"calls:\n- times: many", "[2:10]"},
		"an expression":    {"calls:\n- match: '('", "missing closing )"},
		"a signal":         {"calls:\n- steps:\n  - die: HUP", `signal "HUP"`},
		"an empty find":    {"calls:\n- steps:\n  - edit: {path: a, replace: b}", "step 1: an edit finds"},
		"an edit in vain":  {"calls:\n- steps:\n  - edit: {path: a, find: b, replace: b}", "step 1: an edit finds"},
		"a negative count": {"calls:\n- times: -1", "negative"},
		"not YAML":         {"calls: [", "script"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, log := run(t, test.script, "Do it.", "-p")
			if code != 1 || out != "" || !strings.Contains(log, test.says) {
				t.Errorf("exit %d, said %q and %q; want %q", code, out, log, test.says)
			}
		})
	}
}

// The flags and their effects are those of Claude Code.
func TestFlags(t *testing.T) {
	const script = "calls:\n- match: it\n  result: {text: done, structured: [1], cost_usd: 0.5}"
	for name, test := range map[string]struct {
		prompt string
		args   []string
		code   int
		out    string // part of the output
		log    string
	}{
		"text":           {"Do it.", []string{"-p"}, 0, "done\n", ""},
		"json":           {"Do it.", []string{"--print", "--output-format", "json"}, 0, `"total_cost_usd":0.5`, ""},
		"a session":      {"Do it.", []string{"-p", "--output-format=json", "--session-id=s-9"}, 0, `"session_id":"s-9"`, ""},
		"a schema":       {"Do it.", []string{"-p", "--output-format=json", "--json-schema={}"}, 0, `"structured_output":[1]`, ""},
		"a model":        {"Do it.", []string{"-p", "--output-format=stream-json", "--verbose", "--model=m"}, 0, `"model":"m"`, ""},
		"no verbose":     {"Do it.", []string{"-p", "--output-format=stream-json"}, 1, "", "requires --verbose"},
		"no print":       {"Do it.", nil, 1, "", "--print"},
		"an odd format":  {"Do it.", []string{"-p", "--output-format=xml"}, 1, "", "invalid"},
		"an odd flag":    {"Do it.", []string{"-p", "--bogus"}, 1, "", "unknown option '--bogus'"},
		"no value":       {"Do it.", []string{"-p", "--model"}, 1, "", "argument missing"},
		"a wrong number": {"Do it.", []string{"-p", "--max-turns=x"}, 1, "", "invalid syntax"},
		"no prompt":      {" \n", []string{"-p"}, 1, "", "input must be provided"},
		"no call":        {"Do nothing.", []string{"-p"}, 1, "", "no call of the script matches"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, log := run(t, script, test.prompt, test.args...)
			if code != test.code || !strings.Contains(out, test.out) || !strings.Contains(log, test.log) || (log == "") != (test.log == "") {
				t.Errorf("exit %d, said %q and %q", code, out, log)
			}
		})
	}
}

// Groups of the expression are filled in wherever text occurs.
func TestGroups(t *testing.T) {
	const script = "calls:\n- match: 'Do (\\w+) and (\\w+)'\n  result: {text: $1, structured: {a: ['${2}x', 3], b: {c: $1}}}"
	code, out, log := run(t, script, "Do this and that.", "-p", "--output-format=json", "--json-schema={}")
	if code != 0 || !strings.Contains(out, `"result":"this"`) || !strings.Contains(out, `{"a":["thatx",3],"b":{"c":"this"}}`) {
		t.Errorf("exit %d, said %s, %s", code, out, log)
	}
}

// The same script and prompt give the same bytes.
func TestDeterministic(t *testing.T) {
	script, dir := filepath.Join(t.TempDir(), "s.yaml"), t.TempDir()
	text := "calls:\n- steps:\n  - say: a\n  - write: {path: x/y, content: z}\n  - tool: {name: Grep, input: {b: 1, a: 2}}\n  result: {text: done, tokens: {input: 3}}"
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"-p", "--output-format=stream-json", "--verbose", "--dangerously-skip-permissions"}
	_, first, log := play(t, script, dir, "Do it.", args...)
	for range 20 {
		if code, out, _ := play(t, script, dir, "Do it.", args...); out != first || code != 0 {
			t.Fatalf("exit %d, said\n%s\nand before\n%s", code, out, first)
		}
	}
	if strings.Count(first, "\n") != 8 || log != "" {
		t.Errorf("%s\n%s", first, log)
	}
}

// A call is played at most Times times, across concurrent processes.
func TestTimes(t *testing.T) {
	script := filepath.Join(t.TempDir(), "s.yaml")
	if err := os.WriteFile(script, []byte("calls:\n- {times: 2, result: {text: early}}\n- result: {text: late}"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := make(chan string)
	for range 6 {
		go func() {
			_, out, _ := play(t, script, t.TempDir(), "Do it.", "-p")
			got <- strings.TrimSpace(out)
		}()
	}
	count := map[string]int{}
	for range 6 {
		count[<-got]++
	}
	if count["early"] != 2 || count["late"] != 4 {
		t.Error(count)
	}
}

// An edit replaces a text that occurs once, can be played again, and ends the play if
// the text does not match.
func TestEdit(t *testing.T) {
	args := []string{"-p", "--output-format=stream-json", "--verbose", "--dangerously-skip-permissions"}
	for name, test := range map[string]struct{ before, find, replace, after, says string }{
		"replaced":            {"a b c\n", "b", "x", "a x c\n", ""},
		"inserted":            {"a c\n", "a", "a b", "a b c\n", ""},
		"inserted before":     {"a b c\n", "a", "a b", "a b c\n", ""},
		"shortened":           {"a b c\n", "a b", "a", "a c\n", ""},
		"replaced before":     {"a x c\n", "b", "x", "a x c\n", ""},
		"removed":             {"a b c\n", " b", "", "a c\n", ""},
		"new text elsewhere":  {"a x b\n", "b", "x", "a x x\n", ""},
		"with a group":        {"a it c\n", "$1", "x", "a x c\n", ""},
		"missing":             {"a c\n", "b", "x", "a c\n", "occurs 0 times"},
		"removed before":      {"a c\n", "b", "", "a c\n", "occurs 0 times"},
		"two matches":         {"b b\n", "b", "x", "b b\n", "occurs 2 times"},
		"without such a file": {"", "b", "x", "", "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			script, dir := filepath.Join(t.TempDir(), "s.yaml"), t.TempDir()
			text := fmt.Sprintf("calls:\n- match: '(it)'\n  steps:\n  - edit: {path: f, find: %q, replace: %q}\n  - say: still here\n", test.find, test.replace)
			if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, "f")
			if test.before != "" {
				if err := os.WriteFile(file, []byte(test.before), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			code, out, log := play(t, script, dir, "Do it.", args...)
			fails := test.says != ""
			if (code != 0) != fails || !strings.Contains(log, test.says) || strings.Contains(out, "still here") == fails || strings.Contains(out, `"is_error":true`) != fails {
				t.Errorf("exit %d, said\n%s\n%s", code, out, log)
			}
			if after, err := os.ReadFile(file); string(after) != test.after || (err != nil) != (test.before == "") {
				t.Errorf("the file is %q, %v; want %q", after, err, test.after)
			}
		})
	}
	t.Run("not permitted", func(t *testing.T) {
		code, out, log := run(t, "calls:\n- steps:\n  - edit: {path: f, find: a, replace: b}", "Do it.", "-p", "--output-format=json")
		if code != 0 || !strings.Contains(out, `"tool_name":"Edit"`) || log != "" {
			t.Errorf("exit %d, said %s, %s", code, out, log)
		}
	})
}

// An agent that awaits a pipe continues when a line arrives, and ends when its context ends.
func TestAwait(t *testing.T) {
	dir := t.TempDir()
	file, pipe := filepath.Join(dir, "script.yaml"), filepath.Join(dir, "go")
	if err := errors.Join(os.WriteFile(file, []byte("calls: [{steps: [{await: go}], result: {text: done}}]"), 0o600), syscall.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() { written <- os.WriteFile(pipe, []byte("\n"), 0) }() // returns when the agent reads
	if code, out, log := play(t, file, dir, "Do it.", "-p"); code != 0 || out != "done\n" {
		t.Errorf("exit %d, said %q and %q", code, out, log)
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code := Run(ctx, Process{Args: []string{"-p"}, Script: file, Dir: dir, Stdin: strings.NewReader("Do it."), Stdout: io.Discard, Stderr: io.Discard}); code != exitTerminated {
		t.Errorf("asked to end: exit %d", code)
	}
}

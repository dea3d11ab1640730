package scripted

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
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

// A script that is wrong anywhere is refused before anything is said.
func TestStrictScripts(t *testing.T) {
	for name, test := range map[string]struct{ script, says string }{
		"an unknown key":   {"calls:\n- stepz: []", "[2:3] unknown field \"stepz\""},
		"a key twice":      {"calls:\n- match: a\n  match: b", "[3:3]"},
		"two acts":         {"calls:\n- steps:\n  - {say: a, exit: 1}", "call 1: step 1 has 2 acts"},
		"no act":           {"calls:\n- steps:\n  - {}", "step 1 has 0 acts"},
		"a type":           {"calls:\n- times: many", "[2:10]"},
		"an expression":    {"calls:\n- match: '('", "missing closing )"},
		"a signal":         {"calls:\n- steps:\n  - die: HUP", `signal "HUP"`},
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

// The flags are those of Claude Code, and so is what they ask for.
func TestFlags(t *testing.T) {
	const script = "calls:\n- match: it\n  result: {text: done, structured: [1], cost_usd: 0.5}"
	for name, test := range map[string]struct {
		prompt string
		args   []string
		code   int
		out    string // part of it
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
		"no call fits":   {"Do nothing.", []string{"-p"}, 1, "", "no call of the script fits"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, log := run(t, script, test.prompt, test.args...)
			if code != test.code || !strings.Contains(out, test.out) || !strings.Contains(log, test.log) || (log == "") != (test.log == "") {
				t.Errorf("exit %d, said %q and %q", code, out, log)
			}
		})
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

// A call is played as often as it may be, by however many.
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

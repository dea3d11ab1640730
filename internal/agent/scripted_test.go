package agent

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockkeeper/internal/agent/scripted"
)

// A scriptedCall is a call of the scripted agent as a separate process.
type scriptedCall struct {
	adapter Adapter
	request Request
	files   Files
}

func newScriptedCall(t *testing.T, script string) *scriptedCall {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "script.yaml")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	return &scriptedCall{
		adapter: Claude{Argv: []string{self}},
		files:   filesIn(t.TempDir()),
		request: Request{Prompt: "Write about posts.", Dir: t.TempDir(), Permission: PermitAll,
			Env: append(os.Environ(), playsVariable+"=1", scripted.ScriptVariable+"="+file)},
	}
}

// The scripted agent runs through the adapter of Claude Code as a real process, with every kind
// of success and failure.
//
// shows: PL-27 PL-80 SW-71
func TestScriptedAgent(t *testing.T) {
	for name, test := range map[string]struct {
		script  string
		change  func(*scriptedCall)
		timeout time.Duration
		want    error
		says    string
		check   func(*testing.T, *scriptedCall, Result, []Event)
	}{
		"works": {
			script: "calls:\n- match: 'about (\\w+)'\n  steps:\n  - say: I write $1.\n  - write: {path: 'docs/$1.md', content: \"$1!\\n\"}\n  - write: {path: old.md, content: x}\n  - delete: old.md\n  result: {text: wrote $1, cost_usd: 0.25, tokens: {input: 10, output: 20, cache_read: 3, cache_write: 4}}",
			check: func(t *testing.T, c *scriptedCall, res Result, list []Event) {
				if b, err := os.ReadFile(filepath.Join(c.request.Dir, "docs/posts.md")); string(b) != "posts!\n" || err != nil {
					t.Errorf("%q %v", b, err)
				}
				if _, err := os.Stat(filepath.Join(c.request.Dir, "old.md")); !errors.Is(err, os.ErrNotExist) {
					t.Error(err)
				}
				if res.Text != "wrote posts" || res.CostUSD != 0.25 || res.Turns != 4 || (res.Usage != Usage{10, 20, 3, 4}) || len(res.Session) != 36 || len(res.Denials) != 0 {
					t.Errorf("%+v", res)
				}
				if len(list) < 8 || list[0].Kind != EventStarted || list[1].Text != "I write posts." {
					t.Errorf("%+v", list)
				}
			},
		},
		"denied": {
			script: "calls:\n- steps:\n  - write: {path: a, content: x}\n  - delete: b\n  - tool: {name: Read, answer: text}\n  - tool: {name: WebFetch, input: {url: x}}",
			change: func(c *scriptedCall) {
				c.request.Permission, c.request.Extra = PermitDefault, []string{"--allowedTools=Bash(rm *)"}
			},
			check: func(t *testing.T, c *scriptedCall, res Result, _ []Event) {
				if len(res.Denials) != 2 || res.Denials[0].Tool != "Write" || res.Denials[1].Tool != "WebFetch" {
					t.Errorf("%+v", res.Denials)
				}
				if _, err := os.Stat(filepath.Join(c.request.Dir, "a")); !errors.Is(err, os.ErrNotExist) {
					t.Error(err)
				}
			},
		},
		"structured": {
			script: "calls:\n- result: {text: done, structured: {name: n, count: 3}}",
			change: func(c *scriptedCall) { c.request.Schema = []byte(countSchema) },
			check: func(t *testing.T, _ *scriptedCall, res Result, _ []Event) {
				if string(res.Structured) != `{"count":3,"name":"n"}` {
					t.Errorf("%s", res.Structured)
				}
			},
		},
		"structured wrongly": {
			script: "calls:\n- result: {text: done, structured: {name: n, count: some}}",
			change: func(c *scriptedCall) { c.request.Schema = []byte(countSchema) },
			want:   &Error{Kind: Malformed}, says: "line 1, column 10: at /count: got string, want integer",
		},
		"outside":    {script: "calls:\n- steps:\n  - write: {path: ../a, content: x}\n  result: {text: ok}", check: failedTool},
		"garbage":    {script: "calls:\n- steps:\n  - print: \"Oops\\n\"\n  - exit: 0", want: &Error{Kind: Garbage}, says: "it ended without a result"},
		"flood":      {script: "calls:\n- steps:\n  - flood: 20000000\n  - print: \"\\n\"\n  result: {text: after all}"},
		"exit":       {script: "calls:\n- steps:\n  - log: out of memory\n  - exit: 3", want: &Error{Kind: Crashed}, says: `exit status 3, without a result, last line "out of memory"`},
		"killed":     {script: "calls:\n- steps:\n  - die: KILL", want: &Error{Kind: Crashed}, says: "killed by a signal (killed)"},
		"terminated": {script: "calls:\n- steps:\n  - die: TERM", want: &Error{Kind: Crashed}, says: "exit status 143"},
		"cut":        {script: "calls:\n- result: {text: almost, cut: 60}", want: &Error{Kind: Crashed}, says: "killed by a signal (killed)"},
		"hangs":      {script: "calls:\n- steps:\n  - say: one moment\n  - hang: true", timeout: time.Second, want: &Error{Kind: TimedOut}, says: "resume its session"},
		"overloaded": {script: "calls:\n- steps:\n  - retry: {status: 529, word: overloaded, wait: 1ms}\n  result: {fail: {word: overloaded, status: 529, text: 'API Error: 529 Overloaded'}}", want: &Error{Kind: Transient}, says: "HTTP 529"},
		"limited":    {script: "calls:\n- result: {fail: {word: rate_limit, status: 429, text: You have hit your limit, resets: 4102444800}}", want: &Error{Kind: Limit}, says: "wait until 2100-01-01T00:00:00Z"},
		"no key":     {script: "calls:\n- result: {fail: {word: authentication_failed, status: 401, text: Invalid API key}}", want: &Error{Kind: Refused}, says: "Invalid API key"},
		"turns": {script: "calls:\n- steps:\n  - tool: {name: Read}\n  - tool: {name: Read}\n  - tool: {name: Read}",
			change: func(c *scriptedCall) { c.request.Extra = []string{"--max-turns=2"} }, want: &Error{Kind: Unfinished}, says: "maximum number of turns (2)"},
		"money": {script: "calls:\n- result: {text: x, cost_usd: 2}",
			change: func(c *scriptedCall) { c.request.MaxUSD = 1 }, want: &Error{Kind: Unfinished}, says: "maximum budget ($1)"},
		"a flag it does not know": {script: "calls:\n- {}", change: func(c *scriptedCall) { c.request.Extra = []string{"--bogus"} }, want: &Error{Kind: Refused}, says: "unknown option '--bogus'"},
		"no such program":         {script: "calls:\n- {}", change: func(c *scriptedCall) { c.adapter = Claude{Argv: []string{"/nonexistent/claude"}} }, want: &Error{Kind: Refused}, says: "install the program"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newScriptedCall(t, test.script)
			if test.change != nil {
				test.change(c)
			}
			if test.timeout == 0 {
				test.timeout = time.Minute
			}
			var list []Event
			res, err := Call(t.Context(), c.adapter, c.request, c.files, Options{Run: runPlainly, Tell: gather(&list), Timeout: test.timeout})
			if !sameType(err, test.want) || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Fatalf("%T %v; want %T with %q", err, err, test.want, test.says)
			}
			if test.check != nil {
				test.check(t, c, res, list)
			}
		})
	}
}

func failedTool(t *testing.T, c *scriptedCall, _ Result, list []Event) {
	if _, err := os.Stat(filepath.Join(filepath.Dir(c.request.Dir), "a")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	for _, e := range list {
		if e.Kind == EventToolResult && e.Failed {
			return
		}
	}
	t.Errorf("no tool failed: %+v", list)
}

// A temporary failure is retried in the same session, and counted.
func TestScriptedRetry(t *testing.T) {
	c := newScriptedCall(t, "calls:\n- times: 2\n  result: {cost_usd: 0.5, fail: {word: server_error, status: 500, text: broken}}\n- result: {text: at last, cost_usd: 1}")
	b, err := NewBudget(100, 0, Spent{})
	if err != nil {
		t.Fatal(err)
	}
	traces, sessions := t.TempDir(), map[string]bool{}
	policy := RetryPolicy{Attempts: 5, First: time.Millisecond, Longest: 10 * time.Millisecond, Random: func() float64 { return 0 }}
	res, err := Retry(t.Context(), policy, func(ctx context.Context, attempt int) (Result, error) {
		f := Files{Output: filepath.Join(traces, string(rune('0'+attempt))), Log: filepath.Join(traces, string(rune('0'+attempt))+".log")}
		res, err := Call(ctx, c.adapter, c.request, f, Options{Run: runPlainly, Timeout: time.Minute})
		b.Add(res, err)
		sessions[res.Session], c.request.Resume = true, res.Session
		return res, err
	})
	if err != nil || res.Text != "at last" || len(sessions) != 1 || b.Spent() != (Spent{MicroUSD: 2_000_000, Calls: 3, Dearest: 1_000_000}) {
		t.Errorf("%+v %v, %d sessions, %+v", res, err, len(sessions), b.Spent())
	}
}

// If the calling process dies, the output alone is enough to evaluate the call.
func TestScriptedAgentOutlivesUs(t *testing.T) {
	c := newScriptedCall(t, "calls:\n- result: {text: done, cost_usd: 0.25}")
	if _, err := Call(t.Context(), c.adapter, c.request, c.files, Options{Run: runPlainly, Timeout: time.Minute}); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(c.files.Exit()); err != nil {
		t.Fatal(err)
	}
	res, finished, err := Completed(c.adapter, c.files, nil)
	if !finished || err != nil || res.Text != "done" || res.CostUSD != 0.25 || res.Exit != nil {
		t.Errorf("%+v %v %v", res, finished, err)
	}
}

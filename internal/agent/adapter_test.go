package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockkeeper"
	"lockkeeper/internal/agent/program"
)

// The golden file has the commands of the agents and their environments. It is written with
// -update.
//
// shows: PL-11 PL-16 PL-27 PL-70
func TestCommands(t *testing.T) {
	schema := []byte(`{"type":"object"}`)
	env := []string{"PATH=/bin", "HOME=/home/u", "ANTHROPIC_API_KEY=very-secret", "CLAUDECODE=1", "CLAUDE_CODE_ENTRYPOINT=cli", "DISABLE_AUTOUPDATER=0"}
	requests := []struct {
		name string
		r    Request
	}{
		{"least", Request{}},
		{"model", Request{Model: "some-model"}},
		{"all", Request{Permission: PermitAll, Schema: schema, Resume: "11111111-2222-4333-8444-555555555555", Extra: []string{"--extra", "value"}}},
		{"limit", Request{MaxUSD: 1.5}},
	}
	var got strings.Builder
	for _, name := range program.Names() {
		for _, q := range requests {
			a, err := ByName(name, "/opt/"+name)
			if err != nil {
				t.Fatal(err)
			}
			r := q.r
			r.Prompt, r.Dir, r.Env = "Look at it.\n", "/workspace", env
			fmt.Fprintf(&got, "== %s, %s\n", name, q.name)
			c, stdin, err := a.command(&r, Files{Output: "/traces/out"})
			if err != nil {
				fmt.Fprintf(&got, "refused: %v\n\n", err)
				continue
			}
			for _, arg := range c.Argv {
				fmt.Fprintf(&got, "  %q\n", arg)
			}
			fmt.Fprintf(&got, "  in %s with %s\n  < %q\n\n", c.Dir, strings.Join(c.Env, " "), stdin)
			if err := c.checkSecrets(); err != nil {
				t.Error(err)
			}
			if slices.ContainsFunc(c.Argv, func(arg string) bool { return strings.Contains(arg, "Look") || strings.Contains(arg, "secret") }) {
				t.Errorf("%s, %s: %q", name, q.name, c.Argv)
			}
		}
	}
	golden := filepath.Join("testdata", "commands.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("the commands are not those of %s:\n%s", golden, got.String())
	}
}

// If a program has no option for a schema, the prompt contains the schema once.
func TestSchemaInPrompt(t *testing.T) {
	schema := []byte("{\n  \"type\": \"object\"\n}\n")
	for _, prompt := range []string{"Look at it.", "Look at it. Answer so:\n\n```json\n" + strings.TrimSpace(string(schema)) + "\n```\n"} {
		for _, a := range []Adapter{Plain{Argv: []string{"agent"}}, Gemini{}} {
			_, stdin, err := a.command(&Request{Prompt: prompt, Dir: "/", Schema: schema}, Files{})
			if err != nil || strings.Count(stdin, `"type"`) != 1 || !strings.HasPrefix(stdin, "Look at it.") {
				t.Errorf("%s: %q, %v", a.Name(), stdin, err)
			}
		}
	}
}

// Unsupported and invalid requests are refused before anything is created.
func TestRefusedRequests(t *testing.T) {
	dir := t.TempDir()
	for name, change := range map[string]func(*Request){
		"no prompt":             func(r *Request) { r.Prompt = " \n" },
		"no directory":          func(r *Request) { r.Dir = "" },
		"a permission":          func(r *Request) { r.Permission = "some" },
		"negative money":        func(r *Request) { r.MaxUSD = -1 },
		"a session like a flag": func(r *Request) { r.Resume = "--dangerously-skip-permissions" },
		"an invalid schema":     func(r *Request) { r.Schema = []byte(`{"type":"wrong"}`) },
		"a schema not JSON":     func(r *Request) { r.Schema = []byte(`{`) },
		"a schema elsewhere":    func(r *Request) { r.Schema = []byte(`{"$ref":"https://example.org/x.json"}`) },
		"a schema in a file":    func(r *Request) { r.Schema = []byte(`{"$ref":"file:///etc/passwd"}`) },
		"a schema too long":     func(r *Request) { r.Schema = []byte(`{"title":"` + strings.Repeat("x", maxArgument) + `"}`) },
		"a secret among the arguments": func(r *Request) {
			r.Env, r.Extra = []string{"MY_API_KEY=0123456789"}, []string{"--header=bearer 0123456789"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := asks(dir)
			change(&r)
			f := filesIn(dir)
			_, err := Call(t.Context(), Claude{}, r, f, Options{})
			if lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
				t.Errorf("%T %v", err, err)
			}
			if err != nil && strings.Contains(err.Error(), "0123456789") {
				t.Errorf("the secret is in %q", err)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("%v is left, %v", left, err)
			}
		})
	}
	if _, err := ByName("gpt"); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
		t.Error(err)
	}
	if _, err := ByName("command"); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
		t.Error(err)
	}
	if a, err := ByName(""); err != nil || a.Name() != "claude" {
		t.Error(a, err)
	}
}

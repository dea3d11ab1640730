package flow

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

const tasks = `# what we want
agent: claude
tests: [make test]
tasks:
  - name: docs
    after: [api]
    prompt: |
      Document the API.
      All of it.
    writes:
      - README.md
  - name: api
    prompt_file: prompts/api.md
    reads: [app/models/]
    writes: [app/api.rb, ./app//api.rb, test/api_test.rb]
    tests: [ruby test/api_test.rb]
    agent: codex
`

// shows: CF-22 PL-23
func TestTaskPlan(t *testing.T) {
	p, err := ReadTasks("plan.yaml", []byte(tasks))
	if err != nil {
		t.Fatal(err)
	}
	if p.Tasks[1].PromptFile != "prompts/api.md" {
		t.Errorf("%+v", p.Tasks[1])
	}
	p.Tasks[1].Prompt = "Write it."
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	plan := p.Batches("ann", at)
	got, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"batches":[` +
		`{"id":"api","title":"api","items":[],"write_targets":["app/api.rb","test/api_test.rb"],"reads":["app/models/"],"prompt":"Write it.","tests":["ruby test/api_test.rb"],"agent":"codex"},` +
		`{"id":"docs","title":"docs","items":[],"write_targets":["README.md"],"after":["api"],"prompt":"Document the API.\nAll of it.\n","tests":["make test"],"agent":"claude"}],` +
		`"approved":{"by":"ann","at":"2026-01-02T03:04:05Z"}}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if err := Check(BatchesFile, got); err != nil {
		t.Error(err)
	}
}

// shows: PL-36 SW-15
func TestTaskPlanRefusals(t *testing.T) {
	task := "tasks:\n- name: a\n  prompt: p\n  writes: [x]\n"
	for name, tc := range map[string]struct{ text, want string }{
		"nothing":        {"", "p.yaml: tasks: missing"},
		"no tasks":       {"tasks: []", "p.yaml: tasks: missing"},
		"not a mapping":  {"- a", "p.yaml:1:1: "},
		"syntax":         {"tasks: [", "p.yaml:1:8: "},
		"not text":       {"\xff", "p.yaml: not UTF-8 text"},
		"unknown key":    {task + "  colour: red\n", `p.yaml:5:3: unknown field "colour"`},
		"unknown on top": {"task: []\n", `p.yaml:1:1: unknown field "task"`},
		"key twice":      {task + "  prompt: q\n", "p.yaml:5:3: mapping key \"prompt\" already defined"},
		"number":         {"tasks:\n- name: 3\n  prompt: p\n  writes: [x]\n", "p.yaml:2:9: must be text"},
		"list for text":  {"tasks:\n- name: [a]\n", "p.yaml:2:9: must be text"},
		"text for list":  {"tasks:\n- name: a\n  prompt: p\n  writes: x\n", "p.yaml:4:11: "},
		"blank":          {"tasks:\n- name: a\n  prompt: \"\"\n  writes: [x]\n", "p.yaml:3:11: empty"},
		"no name":        {"tasks:\n- prompt: p\n  writes: [x]\n", "p.yaml:2:11: task: the name is missing"},
		"bad name":       {"tasks:\n- name: a/b\n  prompt: p\n  writes: [x]\n", "p.yaml:2:9: a/b: not a name"},
		"same name":      {task + "- name: a\n  prompt: p\n  writes: [y]\n", "p.yaml:5:9: a: the task in line 2 has this name"},
		"no prompt":      {"tasks:\n- name: a\n  writes: [x]\n", "p.yaml:2:9: a: neither prompt nor prompt_file"},
		"two prompts":    {task + "  prompt_file: f\n", "p.yaml:5:16: a: both prompt and prompt_file"},
		"no writes":      {"tasks:\n- name: a\n  prompt: p\n", "p.yaml:2:9: a: no writes"},
		"directory":      {"tasks:\n- name: a\n  prompt: p\n  writes:\n  - x\n  - app/\n", "p.yaml:6:5: a/writes: over-lock: app/ is a directory"},
		"outside":        {"tasks:\n- name: a\n  prompt: p\n  writes: [../x]\n", `p.yaml:4:12: a/writes: path "../x": a path with ..`},
		"reads outside":  {task + "  reads: [/etc]\n", `p.yaml:5:11: a/reads: path "/etc": not relative`},
		"unknown after":  {task + "  after: [b]\n", `p.yaml:5:11: a/after: unknown task "b"; next: name one of a`},
		"itself":         {task + "  after: [a]\n", "p.yaml:5:11: a/after: each of these comes after the next: a, a"},
		"circle":         {task + "- {name: b, prompt: p, writes: [y], after: [c, a]}\n- {name: c, prompt: p, writes: [z], after: [b]}\n", "p.yaml:5:45: b/after: each of these comes after the next: b, c, b"},
		"anchor":         {"tasks: &a []\n", "p.yaml:1:8: \"&\": a plan cannot have anchors"},
		"second":         {task + "---\n" + task, "p.yaml:5:1: a second document"},
		"deep":           {"tasks: " + strings.Repeat("[", 10_000), "nested too deep"},
	} {
		if _, err := ReadTasks("p.yaml", []byte(tc.text)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
	}
	if _, err := ReadTasks("p.yaml", []byte("---\n"+task)); err != nil {
		t.Error(err)
	}
}

// All errors in the paths and prompts of a plan are reported together, with their positions.
//
// shows: PL-36
func TestTaskPlanPlaces(t *testing.T) {
	p, err := ReadTasks("p.yaml", []byte(tasks))
	if err != nil {
		t.Fatal(err)
	}
	refuse := func(what string) func(string) error {
		return func(path string) error { return errors.New(what + " " + path) }
	}
	want := `p.yaml:11:9: docs: write README.md
p.yaml:15:14: api: write app/api.rb
p.yaml:15:26: api: write ./app//api.rb
p.yaml:15:41: api: write test/api_test.rb
p.yaml:14:13: api: read app/models/`
	if err := p.CheckPaths(refuse("write"), refuse("read")); err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	err = p.ReadPrompts(func(file string) (string, error) { return "", errors.New("no " + file) })
	if want := "p.yaml:13:18: api: no prompts/api.md"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if err := p.ReadPrompts(func(string) (string, error) { return "Write it.", nil }); err != nil || p.Tasks[1].Prompt != "Write it." {
		t.Errorf("%+v, %v", p.Tasks[1], err)
	}
}

// A truncated file is a plan or an error with the name of the file, never a panic.
func TestCutTaskPlan(t *testing.T) {
	for n := range tasks {
		p, err := ReadTasks("p.yaml", []byte(tasks[:n]))
		var at *DocumentError
		if (p == nil) != errors.As(err, &at) {
			t.Fatalf("cut after %d bytes: %+v, %v", n, p, err)
		}
	}
}

func FuzzReadPlan(f *testing.F) {
	f.Add([]byte(tasks))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := ReadTasks("p.yaml", text)
		if err != nil {
			return
		}
		for i := range p.Tasks {
			p.Tasks[i].Prompt = "p"
		}
		plan, err := json.Marshal(p.Batches("ann", time.Now()))
		if err == nil {
			err = Check(BatchesFile, plan)
		}
		if err != nil {
			t.Fatalf("%q was read as %s: %v", text, plan, err)
		}
	})
}

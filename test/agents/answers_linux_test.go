//go:build agents

package agents_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"lockkeeper/internal/agent/scriptedapi"
)

var update = flag.Bool("update", false, "write what the real programs tell their hooks to testdata")

// recordings is the file with recorded hook inputs of Claude Code, by prompt.
const recordings = "../../internal/session/hook/testdata/claude.json"

// The input that the real Claude Code gives its hooks after a call has the form that the tests of
// internal/session/hook use. It distinguishes a file shown in full from one shown in part.
//
// shows: GP-5
func TestHookAnswers(t *testing.T) {
	t.Parallel()
	show := func(file string, more ...any) scriptedapi.Tool {
		input := map[string]any{"file_path": "{dir}/" + file}
		for i := 0; i < len(more); i += 2 {
			input[more[i].(string)] = more[i+1]
		}
		return scriptedapi.Tool{Name: "Read", Input: input}
	}
	calls := []struct {
		name string
		tool scriptedapi.Tool
	}{
		{"a whole file", show("long")},
		{"the same again", show("long")},
		{"a limit beyond the end", show("long", "limit", 5000)},
		{"all lines, but not the end of the last one", show("long", "limit", 2500)},
		{"the first lines", show("long", "limit", 2000)},
		{"the last lines", show("long", "offset", 2001)},
		{"a notebook", show("note.ipynb")},
		{"a new file", scriptedapi.Write("{dir}/new", "a\nb\n")},
		{"a file replaced", scriptedapi.Write("{dir}/new", "c\n")},
		{"a file edited", scriptedapi.Edit("{dir}/new", "c", "d")},
		{"a command", scriptedapi.Bash("cat app/posts.rb")},
		{"a command that prints much", scriptedapi.Bash("seq 9000; cat app/posts.rb")},
		{"a command that fails", scriptedapi.Bash("seq 9000; cat app/posts.rb; false")},
	}
	var steps []scriptedapi.Step
	for _, c := range calls {
		steps = append(steps, use(c.tool))
	}
	h := newHooked(t, play(append(steps, scriptedapi.Step{Text: "Done."})...))
	write(t, filepath.Join(h.dir, "long"), strings.Repeat("x\n", 2500))
	heard := h.listens(t)
	if res, err := h.claude(t.Context(), "Call them", filepath.Join(h.traces, "b")); err != nil || res.Text != "Done." {
		t.Fatalf("%v %q\n%s", err, res.Text, read(t, filepath.Join(h.traces, "b.jsonl")))
	}
	got := heard()
	if len(got) != len(calls) {
		t.Fatalf("%d calls, %d heard of", len(calls), len(got))
	}
	named := map[string]any{}
	for i, c := range calls {
		named[c.name] = shortened(got[i], h.root)
	}
	if *update {
		text, err := json.MarshalIndent(named, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		write(t, recordings, string(text)+"\n")
	}
	var want map[string]any
	if err := json.Unmarshal([]byte(read(t, recordings)), &want); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{} // versions differ in which of these forms they choose
	for _, call := range want {
		known[form(call)] = true
	}
	for name, call := range named {
		if !known[form(call)] {
			t.Errorf("%s has another form; record it with -update, and see whether internal/session/hook understands it:\n%s\nwas\n%s", name, form(call), form(want[name]))
		}
	}
}

// listens adds a second hook that records its input after each call, and returns a function
// that lists the records.
func (h *hooked) listens(t *testing.T) func() []map[string]any {
	t.Helper()
	dir := filepath.Join(h.root, "heard")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	var settings struct {
		Hooks map[string][]any `json:"hooks"`
	}
	if err := json.Unmarshal([]byte(read(t, h.settings)), &settings); err != nil {
		t.Fatal(err)
	}
	for _, event := range []string{"PostToolUse", "PostToolUseFailure"} {
		settings.Hooks[event] = append(settings.Hooks[event], map[string]any{"hooks": []any{map[string]any{"type": "command", "command": "cat > " + dir + "/$(date +%s.%N)"}}})
	}
	text, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	write(t, h.settings, string(text))
	return func() (list []map[string]any) {
		names, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names { // in chronological order
			var call map[string]any
			if err := json.Unmarshal([]byte(read(t, filepath.Join(dir, name.Name()))), &call); err != nil {
				t.Fatal(err)
			}
			list = append(list, call)
		}
		return list
	}
}

// signals makes a hook of ours report when it has answered an event, and returns a function that
// waits for the first report.
func (h *hooked) signals(t *testing.T, event string) func() {
	t.Helper()
	pipe := filepath.Join(h.root, "signal")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(pipe, os.O_RDWR, 0) // with a reader, no writer waits
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	text, command := read(t, h.settings), h.binary+" hook claude-code"
	begin := `"` + event + `":[{"hooks":[{"command":"` + command
	if !strings.Contains(text, begin) {
		t.Fatalf("no hook of %s in %s", event, text)
	}
	write(t, h.settings, strings.Replace(text, begin, begin+"; echo >> "+pipe, 1))
	return func() {
		if _, err := f.Read(make([]byte, 1)); err != nil {
			t.Error(err)
		}
	}
}

// shortened returns a call without values of this run and without long texts, except the
// content of files.
func shortened(value any, root string) any {
	switch v := value.(type) {
	case map[string]any:
		short := map[string]any{}
		for key, in := range v {
			if !slices.Contains([]string{"session_id", "prompt_id", "transcript_path", "cwd", "duration_ms", "tool_use_id", "permission_mode", "effort"}, key) {
				short[key] = shortened(in, root)
			}
			switch key {
			case "content":
				short[key] = in
			case "persistedOutputPath":
				short[key] = "/root/kept.txt"
			}
		}
		return short
	case []any:
		short := []any{}
		for _, in := range v {
			short = append(short, shortened(in, root))
		}
		return short
	case string:
		const most = 200
		if v = strings.ReplaceAll(v, root, "/root"); len(v) > most {
			v = v[:most] + "…"
		}
		return v
	}
	return value
}

// form returns the tool of a call and the shape of its input.
func form(call any) string {
	fields, _ := call.(map[string]any)
	return fmt.Sprintln(fields["tool_name"], strings.Join(shape("", call), "\n"))
}

// shape returns the names and kinds of the fields of a value.
func shape(at string, value any) (list []string) {
	switch v := value.(type) {
	case map[string]any:
		for key, in := range v {
			list = append(list, shape(at+"."+key, in)...)
		}
	case []any:
		for _, in := range v {
			list = append(list, shape(at+"[]", in)...)
		}
	default:
		list = append(list, fmt.Sprintf("%s %T", at, value))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

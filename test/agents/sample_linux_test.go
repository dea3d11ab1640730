//go:build agents

package agents_test

import (
	"os"
	"path/filepath"
	"testing"

	"lockkeeper/internal/agent/scripted"
	"lockkeeper/internal/agent/scriptedapi"
	"lockkeeper/internal/flow/sample"
)

// samplePlays returns the script of the sample application for a model. Claude Code does with
// its tools what the scripted agent does itself.
func samplePlays(t *testing.T) (list []scriptedapi.Play) {
	t.Helper()
	text, err := sample.Script(0)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "script.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	script, err := scripted.ReadScript(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range script.Calls {
		list = append(list, scriptedapi.Play{Prompt: call.Match, Times: call.Times, Steps: stepsOf(t, call)})
	}
	return list
}

// stepsOf returns steps that read all files of a call, make its changes and answer. The tokens
// of the call are those of its answer.
func stepsOf(t *testing.T, call scripted.Call) (steps []scriptedapi.Step) {
	t.Helper()
	var look, change scriptedapi.Step
	seen := map[string]bool{}
	read := func(path string) {
		if !seen[path] {
			seen[path] = true
			look.Tools = append(look.Tools, scriptedapi.Read(path))
		}
	}
	for _, s := range call.Steps {
		switch {
		case s.Say != nil:
			look.Text = *s.Say
		case s.Edit != nil:
			read(s.Edit.Path)
			change.Tools = append(change.Tools, scriptedapi.Edit(s.Edit.Path, s.Edit.Find, s.Edit.Replace))
		case s.Write != nil:
			change.Tools = append(change.Tools, scriptedapi.Write(s.Write.Path, s.Write.Content))
		case s.Tool != nil && s.Tool.Name == "Read":
			read(s.Tool.Input["file_path"].(string))
		case s.Sleep == nil:
			t.Fatalf("%s: there is no such step for Claude Code: %+v", call.Match, s)
		}
	}
	structured, ok := call.Result.Structured.(map[string]any)
	if !ok {
		t.Fatalf("%s: the answer has no form", call.Match)
	}
	for _, s := range []scriptedapi.Step{look, change} {
		if len(s.Tools) > 0 {
			steps = append(steps, s)
		}
	}
	used := call.Result.Tokens
	last := use(scriptedapi.Structured(structured))
	last.Usage = scriptedapi.Usage{Input: used.Input, Output: used.Output, CacheRead: used.CacheRead, CacheWrite: used.CacheWrite}
	return append(steps, last, scriptedapi.Step{Text: "done"})
}

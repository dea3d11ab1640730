package run_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/machine/machinetest"
)

// People are told which existing file a failed test could not find because the sandbox hides it,
// also behind a link in the codebase. The agent that fixes the test is not told.
func TestHiddenFileIsNamed(t *testing.T) {
	outside, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	hidden := filepath.Join(outside, "needed")
	if err := os.WriteFile(hidden, []byte("x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]string{
		"file": "cat " + hidden,
		"link": "cat $PWD/app/link",
		"none": "cat /no/such/file",
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, "SQLite", "tasks")
			if !s.opt.Sandbox.HoldsReads() {
				machinetest.Lacks(t, "this machine has no sandbox: %s", s.opt.Sandbox.Missing)
			}
			s.opt.Limits.Fixes = 1
			write(t, s.root, "app/models/one.rb", "old\n")
			if err := os.Symlink(hidden, filepath.Join(s.root, "app/link")); err != nil {
				t.Fatal(err)
			}
			s.tasks("tests: ['" + test + "']\ntasks:\n  - {name: one, prompt: Do it., writes: [app/models/one.rb]}\n")
			s.play(`
- {match: '^# task .*one', steps: [{write: {path: app/models/one.rb, content: "new\n"}}], result: {structured: {summary: done}}}
- {match: '(?s)^# fix_tests .*agent\.read', result: {structured: {told: true}}}
- {match: '^# fix_tests ', result: {structured: {summary: tried}}}
`)
			if one := s.batch(s.resume(false), tasks, "one"); one.Status != flow.Failed || !strings.Contains(one.Error, "after 1 fixes") {
				t.Fatalf("%+v", one)
			}
			warned := ""
			for _, n := range s.news(run.NewsWarning) {
				if strings.Contains(n.Text, "agent.read") {
					warned = n.Text
				}
			}
			if name == "none" && warned != "" || name != "none" && !strings.HasPrefix(warned, hidden+" exists on this machine") {
				t.Errorf("warned: %q", warned)
			}
		})
	}
}

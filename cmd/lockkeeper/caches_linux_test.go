package main

import (
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockkeeper/internal/machine/machinetest"
)

// goProject is a Go project with one package that no agent changes. Its test command prints what it
// compiles.
var goProject = map[string]string{
	"go.mod": "module example.org/m\n\ngo 1.24\n", "word/word.go": "package word\n\nconst Word = \"old\"\n",
	"word/word_test.go":     "package word\n\nimport \"testing\"\n\nfunc TestWord(t *testing.T) {\n\tif Word == \"\" {\n\t\tt.Fatal(Word)\n\t}\n}\n",
	"steady/steady.go":      "package steady\n\nfunc F() int { return 1 }\n",
	"steady/steady_test.go": "package steady\n\nimport \"testing\"\n\nfunc TestF(t *testing.T) { F() }\n",
	"lockkeeper.yaml":       "layout: plain\ngate: {allowed_write_paths: [word]}\nrun: {test_command: go test -x ./..., verify: off, baseline: BASELINE}\nagent: {name: command, command: [sh, agent.sh]}\n",
	"agent.sh":              "cat >/dev/null; sed -i s/old/new/ word/word.go\n",
	"tasks.yaml":            "tasks:\n  - {name: word, prompt: The word is new., writes: [word/word.go]}\n",
}

// lastOutput returns the output of the tests of a run.
func (c checkout) lastOutput() string {
	c.Helper()
	found, err := filepath.Glob(filepath.Join(c.dir, ".lockkeeper/calls/*test*/*/output"))
	if err != nil || len(found) != 1 {
		c.Fatalf("%q, %v", found, err)
	}
	text, err := os.ReadFile(found[0])
	if err != nil {
		c.Fatal(err)
	}
	return string(text)
}

// The tests of a run compile nothing that a trial on the unchanged tree has compiled. Without a
// trial they compile it.
func TestTrialWarmsCaches(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		machinetest.Lacks(t, "%v", err)
	}
	compiles := func(text, name string) bool {
		return strings.Contains(text, "/compile ") && strings.Contains(text, " -p example.org/m/"+name+" ")
	}
	const before, dry, without = "stop", "dry run", "off"
	for _, trial := range []string{before, dry, without} {
		t.Run(trial, func(t *testing.T) {
			files := maps.Clone(goProject)
			files["lockkeeper.yaml"] = strings.Replace(files["lockkeeper.yaml"], "BASELINE", map[bool]string{true: before, false: without}[trial == before], 1)
			c := newCheckout(t, files)
			commands := []string{"lockkeeper init --yes >../init", "lockkeeper run --plan tasks.yaml --no-ui"}
			if trial == dry {
				commands = slices.Insert(commands, 1, "lockkeeper run --plan tasks.yaml --dry-run")
			}
			if out, n := c.run(commands...); n != len(commands) {
				t.Fatalf("step %d: %s", n+1, out)
			}
			text := c.lastOutput()
			if !compiles(text, "word") || compiles(text, "steady") != (trial == without) {
				t.Errorf("%s", text)
			}
			if out, n := c.run("lockkeeper uninit --yes"); n != 1 {
				t.Errorf("%s", out)
			}
			if left, err := filepath.Glob(filepath.Join(filepath.Dir(c.dir), "state/lockkeeper/caches/*")); err != nil || len(left) != 0 {
				t.Errorf("%q, %v", left, err)
			}
		})
	}
}

// Neither an agent nor the tests of a batch change what later commands find in a cache of a tool.
// Only the tests of the unchanged tree do.
func TestAgentsCannotPoisonCaches(t *testing.T) {
	c := newCheckout(t, map[string]string{
		"word.txt":        "old\n",
		"lockkeeper.yaml": "layout: plain\ngate: {allowed_write_paths: [.]}\nrun: {test_command: sh check.sh, verify: off}\nagent: {name: command, command: [sh, agent.sh]}\n",
		"agent.sh":        "cat >/dev/null; sed -i s/old/new/ word.txt; cd ~/.cache/pip; for f in agent trial mine; do echo poison >$f; done\n",
		"check.sh":        "w=$PWD; cd ~/.cache/pip; cat * 2>/dev/null; if grep -q old $w/word.txt; then echo trusted >trial; else for f in batch trial mine; do echo poison >$f; done; fi\n",
		"tasks.yaml":      "tasks:\n  - {name: one, prompt: The word is new., writes: [word.txt]}\n  - {name: two, prompt: Nothing is left to do., writes: [other.txt], after: [one]}\n",
	})
	commands := []string{"lockkeeper init --yes >../init", "lockkeeper run --plan tasks.yaml --dry-run >../forecast", "lockkeeper run --plan tasks.yaml --no-ui"}
	home := filepath.Join(filepath.Dir(c.dir), "home")
	mine := filepath.Join(home, ".cache/pip/mine")
	if err := os.MkdirAll(filepath.Dir(mine), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(mine, []byte("mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, command := range commands {
		commands[i] = "HOME=" + home + " " + command
	}
	if out, n := c.run(commands...); n != len(commands) {
		t.Fatalf("step %d: %s", n+1, out)
	}
	outputs, err := filepath.Glob(filepath.Join(c.dir, ".lockkeeper/calls/*test*/*/output"))
	if err != nil || len(outputs) == 0 {
		t.Fatalf("%q, %v", outputs, err)
	}
	for _, file := range outputs {
		if text, err := os.ReadFile(file); err != nil || string(text) != "mine\ntrusted\n" {
			t.Errorf("the tests saw %q, %v", text, err)
		}
	}
	var kept []string
	err = filepath.WalkDir(filepath.Join(filepath.Dir(c.dir), "state/lockkeeper/caches"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && d.Name() != "lock" {
			kept = append(kept, d.Name())
		}
		return err
	})
	if err != nil || !slices.Equal(slices.Compact(kept), []string{"trial"}) {
		t.Errorf("kept %q, %v", kept, err)
	}
	if entries, err := os.ReadDir(filepath.Dir(mine)); err != nil || len(entries) != 1 {
		t.Errorf("the user's cache: %v, %v", entries, err)
	}
}

package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"lockkeeper/internal/git/gittest"
)

// workflowIn returns the commands of the CI workflow that a page shows.
func workflowIn(t *testing.T, page string) (commands []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		if !strings.Contains(block[1], "runs-on:") {
			continue
		}
		var workflow struct {
			Jobs map[string]struct {
				Steps []struct {
					Run string `yaml:"run"`
				} `yaml:"steps"`
			} `yaml:"jobs"`
		}
		if err := yaml.Unmarshal([]byte(block[1]), &workflow); err != nil {
			t.Fatalf("%s: %v", page, err)
		}
		for _, job := range workflow.Jobs {
			for _, step := range job.Steps {
				if step.Run != "" {
					commands = append(commands, step.Run)
				}
			}
		}
	}
	if len(commands) == 0 {
		t.Fatalf("%s shows no workflow", page)
	}
	return commands
}

// A checkout is a git repository in which the commands of a workflow run, as CI runs them:
// each in a shell without a terminal, until one fails.
type checkout struct {
	*testing.T
	dir string
}

func newCheckout(t *testing.T, files map[string]string) checkout {
	t.Helper()
	c := checkout{t, filepath.Join(t.TempDir(), "repo")}
	for name, text := range files {
		c.write(name, text)
	}
	gittest.Run(t, c.dir, "init", "-q", "-b", "main")
	gittest.Run(t, c.dir, "add", "-A")
	gittest.Run(t, c.dir, "commit", "-qm", "first")
	return c
}

func (c checkout) write(name, text string) {
	c.Helper()
	file := filepath.Join(c.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		c.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		c.Fatal(err)
	}
}

func (c checkout) command(command string) *exec.Cmd {
	cmd := exec.CommandContext(c.Context(), "sh", "-e", "-c", command)
	cmd.Dir, cmd.Env = c.dir, append(gittest.Env(), "CI=true", "GORACE=atexit_sleep_ms=0", "XDG_STATE_HOME="+filepath.Join(filepath.Dir(c.dir), "state"))
	return cmd
}

// run runs commands until one fails, and returns their output and how many succeeded.
func (c checkout) run(commands ...string) (out string, succeeded int) {
	c.Helper()
	for _, command := range commands {
		said, err := c.command(command).CombinedOutput()
		out += string(said)
		if err != nil {
			return out, succeeded
		}
		succeeded++
	}
	return out, succeeded
}

// The workflow in docs/links.md passes with valid links and fails with a broken one. Other
// documents are only reported, and nothing but the report is written.
func TestLinksInCI(t *testing.T) {
	steps := workflowIn(t, "links.md")
	c := newCheckout(t, map[string]string{"README.md": "[index](docs/INDEX.md), `build/app.log`, e.g. docs/none.md\n", "docs/INDEX.md": "# Index\n", "docs/old.md": "[gone](gone.md)\n", ".gitignore": "build\n"})
	if out, n := c.run(steps...); n != len(steps) {
		t.Fatalf("step %d failed:\n%s", n+1, out)
	}
	report, err := os.ReadFile(filepath.Join(c.dir, "links.json"))
	if err != nil || !strings.Contains(string(report), `"target": "gone.md"`) {
		t.Errorf("%s, %v", report, err)
	}
	if changed := gittest.Run(t, c.dir, "status", "--porcelain"); strings.TrimSpace(changed) != "?? links.json" {
		t.Errorf("git status: %s", changed)
	}
	c.write("docs/INDEX.md", "[gone](gone.md)\n")
	if out, n := c.run(steps...); n != 0 || !strings.Contains(out, "broken: docs/INDEX.md:1: link gone.md") {
		t.Errorf("%d steps succeeded:\n%s", n, out)
	}
}

// While the tests of the workflow in docs/lease.md run, tidy moves nothing, but a second
// test run works beside them. Afterwards tidy runs, without a terminal.
//
// shows: LE-49
func TestTidyDuringTests(t *testing.T) {
	steps := workflowIn(t, "lease.md")
	under := slices.IndexFunc(steps, func(step string) bool { return strings.Contains(step, "make test") })
	if under < 0 {
		t.Fatalf("no step runs the tests: %q", steps)
	}
	c := newCheckout(t, map[string]string{"README.md": "x\n", "NOTES.md": "a fixture of the tests\n", "lockkeeper.yaml": "gate: {allowed_write_paths: [.]}\n",
		"Makefile": "test:\n\t@echo started; read go; cat NOTES.md\n"})
	if out, n := c.run("lockkeeper init"); n != 1 {
		t.Fatal(out)
	}

	tests := c.command(steps[under])
	in, err := tests.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := tests.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := tests.Start(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 1024)
	if n, err := out.Read(said); err != nil || !strings.Contains(string(said[:n]), "started") {
		t.Fatalf("%q, %v", said[:n], err)
	}
	if text, n := c.run("lockkeeper tidy --execute --lease-timeout 0"); n != 0 || !strings.Contains(text, "another process is running") {
		t.Errorf("tidy ran during the tests:\n%s", text)
	}
	if text, n := c.run("echo go | { " + steps[under] + "; }"); n != 1 || !strings.Contains(text, "a fixture of the tests") {
		t.Errorf("a second test run:\n%s", text)
	}
	if _, err := in.Write([]byte("go\n")); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(out)
	if err := errors.Join(err, tests.Wait()); err != nil || !strings.Contains(string(rest), "a fixture") {
		t.Errorf("the tests ended with %v: %q", err, rest)
	}

	others := slices.Delete(slices.Clone(steps), under, under+1)
	if text, n := c.run(others...); n != len(others) {
		t.Errorf("step %d:\n%s", n+1, text)
	}
	if text, n := c.run("lockkeeper tidy --execute --lease-timeout 0"); n != 1 || !strings.Contains(text, "moved       NOTES.md -> docs/NOTES.md") {
		t.Errorf("tidy after the tests:\n%s", text)
	}
}

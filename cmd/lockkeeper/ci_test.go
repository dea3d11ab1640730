package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
	cmd.Dir, cmd.Env = c.dir, append(gittest.Env(), "CI=true", "MAKEFLAGS=", "MAKELEVEL=", "GORACE=atexit_sleep_ms=0", "XDG_STATE_HOME="+filepath.Join(filepath.Dir(c.dir), "state"))
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

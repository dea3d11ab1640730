package conduct

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"lockkeeper/internal/project"
	"lockkeeper/internal/project/config"
	"lockkeeper/tree"
)

// An agent gets a copy of its program's own directory, also if a variable has moved it, and may
// not write the original. No variable gives it access to the codebase or to Lockkeeper's own
// files.
//
// shows: GP-5
func TestAgentHomes(t *testing.T) {
	base := t.TempDir()
	for _, dir := range []string{"home/.claude", "home/.codex", "code/.config", "state/lockkeeper", "elsewhere/.gemini"} {
		if err := os.MkdirAll(filepath.Join(base, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(base, dir, "settings.json"), []byte(dir), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(base, "elsewhere/settings.json"), []byte("elsewhere"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(base, "code/.config"), filepath.Join(base, "link")); err != nil {
		t.Fatal(err)
	}
	root, err := tree.Open(filepath.Join(base, "code"))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for name, test := range map[string]struct {
		agent, variable, value string
		want                   string // the settings in the copy; empty: none
	}{
		"usual":                 {"claude", "", "", "home/.claude"},
		"claude moved":          {"claude", "CLAUDE_CONFIG_DIR", "elsewhere", "elsewhere"},
		"gemini moved":          {"gemini", "GEMINI_CLI_HOME", "elsewhere", "elsewhere/.gemini"},
		"another agent's":       {"claude", "CODEX_HOME", "elsewhere", "home/.claude"},
		"into the codebase":     {"claude", "CLAUDE_CONFIG_DIR", "code/.config", ""},
		"by a link":             {"claude", "CLAUDE_CONFIG_DIR", "link", ""},
		"around the codebase":   {"claude", "CLAUDE_CONFIG_DIR", ".", ""},
		"into Lockkeeper's own": {"claude", "CLAUDE_CONFIG_DIR", "state/lockkeeper", ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := &project.Project{Root: root, Config: &config.Config{}, StateDir: filepath.Join(base, "state"), Env: func(variable string) (string, bool) {
				switch variable {
				case "HOME":
					return filepath.Join(base, "home"), true
				case test.variable:
					return filepath.Join(base, test.value), true
				}
				return "", false
			}}
			cache := filepath.Join(base, "cache")
			a.Config.Agent.Caches = []string{cache}
			reach, err := reach(t.Context(), a, []string{test.agent, ""}, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{test.agent, ""} {
				if r := reach(name); !slices.Equal(r.Write, []string{cache}) || (r.Own == nil) != (name == "") {
					t.Errorf("%q may write %q, and has %v of its own", name, r.Write, r.Own)
				}
			}
			own := filepath.Join(t.TempDir(), "own")
			c, err := reach(test.agent).Own.Open(t.Context(), own, func(err error) { t.Error(err) })
			if err != nil {
				t.Fatal(err)
			}
			text, _ := os.ReadFile(filepath.Join(own, "."+test.agent, "settings.json")) // may be missing
			if err := c.Close(t.Context()); err != nil || string(text) != test.want {
				t.Errorf("%q, %v", text, err)
			}
		})
	}
}

// A configured path that contains Lockkeeper's own state is refused, because an agent that reads
// the keys there is an administrator.
func TestReachKeepsTheStateOut(t *testing.T) {
	base := t.TempDir()
	for _, dir := range []string{"home/.local/state/lockkeeper", "code/.lockkeeper", "code/tmp", "elsewhere"} {
		if err := os.MkdirAll(filepath.Join(base, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	root, err := tree.Open(filepath.Join(base, "code"))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for place, good := range map[string]bool{base + "/elsewhere": true, "tmp": true, "~/.cache": true, base: false, ".": false, ".lockkeeper": false, "~/.local": false, "~/": false,
		base + "/home/.local/state/lockkeeper/access": false} {
		for _, key := range []string{"agent.read", "agent.caches"} {
			a := &project.Project{Root: root, Config: &config.Config{}, StateDir: filepath.Join(base, "home/.local/state/lockkeeper"), Env: func(name string) (string, bool) {
				return filepath.Join(base, "home"), name == "HOME"
			}}
			if key == "agent.read" {
				a.Config.Agent.Read = []string{place}
			} else {
				a.Config.Agent.Caches = []string{place}
			}
			if _, err := reach(t.Context(), a, []string{"claude"}, nil); (err == nil) != good {
				t.Errorf("%s: %s: %v", key, place, err)
			}
		}
	}
}

package app

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"lockkeeper/internal/config"
	"lockkeeper/tree"
)

// An agent may write where it keeps its own state, also where a variable has moved it: a
// login that it renews there is not lost. By no variable it gets into the codebase, or into
// what Lockkeeper keeps.
//
// shows: GP-5
func TestAgentHomes(t *testing.T) {
	base := t.TempDir()
	for _, dir := range []string{"home/.claude", "code/.config", "state", "elsewhere"} {
		if err := os.MkdirAll(filepath.Join(base, dir), 0o755); err != nil {
			t.Fatal(err)
		}
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
		want                   []string
	}{
		"usual":                 {"claude", "", "", []string{"cache", "home/.claude"}},
		"claude moved":          {"claude", "CLAUDE_CONFIG_DIR", "elsewhere", []string{"cache", "elsewhere"}},
		"codex moved":           {"codex", "CODEX_HOME", "elsewhere", []string{"cache", "elsewhere"}},
		"gemini moved":          {"gemini", "GEMINI_CLI_HOME", "elsewhere", []string{"cache", "elsewhere/.gemini"}},
		"another agent's":       {"claude", "CODEX_HOME", "elsewhere", []string{"cache", "home/.claude"}},
		"into the codebase":     {"claude", "CLAUDE_CONFIG_DIR", "code/.config", []string{"cache"}},
		"by a link":             {"claude", "CLAUDE_CONFIG_DIR", "link", []string{"cache"}},
		"around the codebase":   {"claude", "CLAUDE_CONFIG_DIR", ".", []string{"cache"}},
		"into Lockkeeper's own": {"claude", "CLAUDE_CONFIG_DIR", "state/lockkeeper", []string{"cache"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := &App{Root: root, Config: &config.Config{}, state: filepath.Join(base, "state"), env: func(variable string) (string, bool) {
				switch variable {
				case "HOME":
					return filepath.Join(base, "home"), true
				case test.variable:
					return filepath.Join(base, test.value), true
				}
				return "", false
			}}
			a.Config.Agent.Caches = []string{filepath.Join(base, "cache")}
			var want []string
			for _, place := range test.want {
				want = append(want, filepath.Join(base, place))
			}
			reach, err := a.reach(t.Context(), []string{test.agent, ""}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := reach(test.agent).Write; !slices.Equal(got, want) {
				t.Errorf("%q; want %q", got, want)
			}
			if got := reach("").Write; !slices.Equal(got, want[:1]) {
				t.Errorf("a test may write %q", got)
			}
		})
	}
}

// A path of the configuration with Lockkeeper's own state in it is refused: an agent that reads
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
			a := &App{Root: root, Config: &config.Config{}, state: filepath.Join(base, "home/.local/state/lockkeeper"), env: func(name string) (string, bool) {
				return filepath.Join(base, "home"), name == "HOME"
			}}
			if key == "agent.read" {
				a.Config.Agent.Read = []string{place}
			} else {
				a.Config.Agent.Caches = []string{place}
			}
			if _, err := a.reach(t.Context(), []string{"claude"}, nil); (err == nil) != good {
				t.Errorf("%s: %s: %v", key, place, err)
			}
		}
	}
}

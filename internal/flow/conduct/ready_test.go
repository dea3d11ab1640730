package conduct

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockkeeper/internal/project"
	"lockkeeper/internal/project/config"
	"lockkeeper/tree"
)

// A default agent needs a login or a key, and the allowlist a path that exists.
func TestReady(t *testing.T) {
	dir, home := t.TempDir(), t.TempDir()
	root, err := tree.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	env := map[string]string{"HOME": home}
	a := &project.Project{Root: root, Config: config.Default(), Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
	if got := MissingLogin(a); !strings.Contains(got, ".claude/.credentials.json is missing") {
		t.Error(got)
	}
	for _, set := range []string{"ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK"} {
		env = map[string]string{"HOME": home, set: "x"}
		if got := MissingLogin(a); got != "" {
			t.Errorf("%s: %s", set, got)
		}
	}
	env = map[string]string{"HOME": home}
	if err := os.Mkdir(filepath.Join(home, ".claude"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".claude/.credentials.json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := MissingLogin(a); got != "" {
		t.Error(got)
	}
	if !AllowsFiles(a) {
		t.Error("the root does not exist")
	}
	if a.Config.Gate.AllowedWritePaths = []string{"src"}; AllowsFiles(a) {
		t.Error("src exists")
	}
}

package enrol_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// Codex gives an MCP server only the variables that its entry names. Our entry without variables
// is replaced. An entry that a person changed stays.
func TestCodexPassesVariables(t *testing.T) {
	for name, test := range map[string]struct {
		entry    string
		replaced bool
	}{
		"ours":         {"[mcp_servers.lockkeeper]\ncommand = \"lockkeeper\"\nargs = [\"mcp\"]\n", true},
		"a person's":   {"[mcp_servers.lockkeeper]\ncommand = \"lockkeeper\"\nargs = [\"mcp\"]\nenabled = false\n", false},
		"with its own": {"[mcp_servers.lockkeeper]\ncommand = \"lockkeeper\"\nargs = [\"mcp\"]\nenv_vars = [\"XDG_STATE_HOME\"]\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			const rest = "model = \"x\"\n"
			s := site(t, txtar.File{Name: ".codex/config.toml", Data: []byte(rest + "\n" + test.entry)})
			h := host(t, "codex")
			apply(t, plan(t, s, h), nil)
			text, err := os.ReadFile(filepath.Join(s.Root, ".codex/config.toml"))
			if err != nil {
				t.Fatal(err)
			}
			if replaced := strings.Contains(string(text), `"LOCKKEEPER_STORE"`); replaced != test.replaced || !strings.HasPrefix(string(text), rest) || strings.Count(string(text), "lockkeeper]") != 1 {
				t.Errorf("it holds\n%s", text)
			}
			if again := plan(t, s, h); len(again.Edits) > 0 {
				t.Errorf("a second time there is to do:\n%s", diffs(again))
			}
		})
	}
}

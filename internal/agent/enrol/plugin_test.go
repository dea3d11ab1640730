package enrol

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

// The plugin has the hooks and the MCP entry that enrolling puts into a project.
func TestPlugin(t *testing.T) {
	o := order{host: claude(), program: Program{serverName, serverName}}
	for name, part := range map[string]part{"hooks/hooks.json": hooks{}, ".mcp.json": servers{"mcpServers"}} {
		want, err := part.into("{}\n", o)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("../../../plugins/lockkeeper", name)
		if flag.Lookup("update").Value.String() == "true" {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%s: %v, and it is\n%s\nwant\n%s", file, err, got, want)
		}
	}
}

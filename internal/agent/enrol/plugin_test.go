package enrol

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The plugin has the hooks and the MCP entry that enrolling puts into a project, and finds the
// program if PATH does not.
func TestPlugin(t *testing.T) {
	o := order{host: claude(), program: Program{Shell: `PATH="$PATH:` + pluginRoot + `/bin" ` + serverName, Path: pluginRoot + "/bin/" + serverName}}
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

// The plugin's launcher starts the program from PATH or from a usual directory, and never itself.
func TestPluginFindsProgram(t *testing.T) {
	launcher, err := filepath.Abs("../../../plugins/lockkeeper/bin/lockkeeper")
	if err != nil {
		t.Fatal(err)
	}
	home, elsewhere := t.TempDir(), t.TempDir()
	run := func(path string) (string, int) {
		cmd := exec.CommandContext(t.Context(), launcher, "mcp", "a b")
		cmd.Env = []string{"HOME=" + home, "PATH=" + path + ":/usr/bin:/bin", "NPM_CONFIG_PREFIX=" + home + "/npm"}
		out, _ := cmd.CombinedOutput() // the exit code has the error
		return string(out), cmd.ProcessState.ExitCode()
	}
	install := func(dir string) {
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, serverName), []byte("#!/bin/sh\necho \"$0 $1,$2\"\n"), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	if installed, _ := filepath.Glob("/usr/*bin/lockkeeper"); len(installed) == 0 {
		if out, code := run(filepath.Dir(launcher)); code != 127 || !strings.Contains(out, "next: npm install -g lockkeeper") {
			t.Errorf("without a program: %d %s", code, out)
		}
	}
	for _, dir := range []string{filepath.Join(home, "npm/bin"), filepath.Join(home, ".local/bin"), elsewhere} { // the later ones are preferred
		install(dir)
		if out, code := run(elsewhere); code != 0 || out != dir+"/lockkeeper mcp,a b\n" {
			t.Errorf("with the program in %s: %d %s", dir, code, out)
		}
	}
}

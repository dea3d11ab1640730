package conduct

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"lockkeeper/internal/agent/sandbox"
	"lockkeeper/internal/machine/machinetest"
	"lockkeeper/internal/project"
	"lockkeeper/internal/project/config"
	"lockkeeper/tree"
)

// The toolchains of this machine, also those in the home directory, work in a sandbox with the
// reach of test commands.
func TestToolchainsWorkInASandbox(t *testing.T) {
	level, err := sandbox.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !level.HoldsReads() {
		machinetest.Lacks(t, "a sandbox: %s", level.Missing)
	}
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"code", "state", "work/tmp", "private"} {
		if err := os.MkdirAll(filepath.Join(base, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	root, err := tree.Open(filepath.Join(base, "code"))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	a := &project.Project{Root: root, Config: &config.Config{}, StateDir: filepath.Join(base, "state"), Env: os.LookupEnv}
	reach, err := reach(t.Context(), a, nil, os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	work := filepath.Join(base, "work")
	for name, text := range map[string]string{
		"go.mod": "module example.org/m\n\ngo 1.24\n", "m_test.go": "package m\n\nimport (\n\t\"net/http/httptest\"\n\t\"testing\"\n)\n\nfunc TestM(t *testing.T) { httptest.NewServer(nil).Close() }\n",
		"m.py": "import ssl, sqlite3, json\nopen('out', 'w').write('x')\n", "m.js": "require('fs').writeFileSync('out', 'x')\n", "m.rs": "fn main() {}\n",
	} {
		if err := os.WriteFile(filepath.Join(work, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r := reach("")
	confinement := sandbox.Confinement{Write: []string{work}, Read: r.Read, Scratch: r.Scratch, Private: filepath.Join(base, "private")}
	for _, argv := range [][]string{{"go", "test", "./..."}, {"python3", "m.py"}, {"node", "m.js"}, {"rustc", "m.rs"}, {"cargo", "--version"}, {"git", "init", "-q", "repo"}} {
		t.Run(argv[0], func(t *testing.T) {
			plain := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
			plain.Dir = work
			began := time.Now()
			if said, err := plain.CombinedOutput(); err != nil {
				machinetest.Lacks(t, "%s does not work here: %v: %s", argv[0], err, said)
			}
			outside := time.Since(began)
			wrapped, err := sandbox.Wrap(level, confinement, argv)
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), wrapped[0], wrapped[1:]...)
			cmd.Dir, cmd.Env = work, sandbox.Environ(os.Environ(), filepath.Join(work, "tmp"))
			began = time.Now()
			said, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%v: %s", err, said)
			}
			t.Logf("%s outside, %s inside: %s", outside, time.Since(began), said)
		})
	}
}

package projecttest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockkeeper/internal/agent/scripted"
	"lockkeeper/internal/flow/sample"
	"lockkeeper/internal/project"
	"lockkeeper/store"
)

// A Project is a codebase and the environment of its users.
type Project struct {
	Dir   string // contains Root and everything else
	Root  string
	Env   []string
	Clock func() store.Moment // the clock of the store; nil: its own
}

// Empty returns a codebase that contains only its configuration.
func Empty(t testing.TB, config string) *Project {
	t.Helper()
	return In(t, t.TempDir(), config)
}

// In returns a codebase like Empty in a directory, which must be empty.
func In(t testing.TB, dir, config string) *Project {
	t.Helper()
	dir, err := filepath.EvalSymlinks(dir)
	Must(t, err)
	root, home := filepath.Join(dir, "blog"), filepath.Join(dir, "beside")
	Must(t, os.Mkdir(root, 0o755), os.Mkdir(home, 0o700))
	p := &Project{Dir: dir, Root: root, Env: []string{"XDG_STATE_HOME=" + filepath.Join(dir, "state"), "HOME=" + home, "GORACE=" + goRace, "PATH=" + os.Getenv("PATH")}}
	p.configure(t, config)
	return p
}

// Options configure the sample application.
type Options struct {
	Pace float64 // speed of the agents; 0: no waits
	Run  string  // lines of the configuration under "run"
}

// Sample returns the sample application with scripted agents.
func Sample(t testing.TB, o Options) *Project {
	t.Helper()
	p := Empty(t, "")
	Must(t, os.Remove(p.config()), sample.Write(p.Root))
	home, _ := Lookup(p.Env)("HOME")
	script, err := sample.Script(o.Pace)
	Must(t, err)
	agent, said := filepath.Join(home, scripted.Program), filepath.Join(home, "script.yaml")
	Must(t, os.WriteFile(said, script, 0o600))
	callSelf(t, agent)
	p.Env = append(p.Env, scripted.ScriptVariable+"="+said)
	p.configure(t, fmt.Sprintf(`gate: {allowed_write_paths: [app, test, config]}
agent: {command: [%q], caches: [%q]}
run:
  test_command: %s {path}
`, agent, home, sample.Test)+o.Run)
	return p
}

// callSelf makes the test binary available under another name: see Main.
func callSelf(t testing.TB, name string) {
	t.Helper()
	exe, err := os.Executable()
	Must(t, err, os.Symlink(exe, name))
}

// With adds files to the codebase, by path.
func (p *Project) With(t testing.TB, files map[string]string) *Project {
	t.Helper()
	for path, text := range files {
		file := filepath.Join(p.Root, path)
		Must(t, os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644))
	}
	return p
}

// Read returns the content of a file of the codebase, or "" if there is none.
func (p *Project) Read(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.Root, path))
	if !errors.Is(err, os.ErrNotExist) {
		Must(t, err)
	}
	return string(text)
}

func (p *Project) config() string { return filepath.Join(p.Root, "lockkeeper.yaml") }

func (p *Project) configure(t testing.TB, config string) {
	t.Helper()
	Must(t, os.WriteFile(p.config(), []byte(config), 0o644))
}

// Lookup finds variables in an environment.
func Lookup(env []string) func(name string) (string, bool) {
	return func(name string) (string, bool) {
		for _, entry := range slices.Backward(env) { // the last entry of a variable counts
			if value, ok := strings.CutPrefix(entry, name+"="); ok {
				return value, true
			}
		}
		return "", false
	}
}

// Open makes the codebase lockable and opens it for as long as the test runs.
func (p *Project) Open(t testing.TB) *project.Project {
	t.Helper()
	s := project.Settings{Dir: p.Root, Env: Lookup(p.Env)}
	_, err := project.Init(t.Context(), s, project.InitOptions{})
	Must(t, err)
	s.Clock = p.Clock
	a, err := project.Open(t.Context(), s)
	Must(t, err)
	t.Cleanup(func() { Must(t, a.Close()) })
	return a
}

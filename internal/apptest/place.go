package apptest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"lockkeeper/internal/agent/scripted"
	"lockkeeper/internal/app"
	"lockkeeper/internal/sample"
	"lockkeeper/internal/sandbox"
)

// Main makes the test's own program what a run starts: a sandbox, and in it, under its
// name, the scripted agent.
func Main(m *testing.M) {
	if handled, code := sandbox.Main(os.Args); handled {
		os.Exit(code)
	}
	if filepath.Base(os.Args[0]) == scripted.Program {
		os.Exit(scripted.Main())
	}
	os.Setenv("GORACE", goRace)
	goleak.VerifyTestMain(m)
}

// Must ends the test if anything went wrong.
func Must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// goRace keeps programs from lingering for a second at their end under the race detector.
const goRace = "atexit_sleep_ms=0"

// Place is a codebase, and the environment of whoever works in it.
type Place struct {
	Root string
	Env  []string
}

// Empty is a codebase with nothing but its configuration.
func Empty(t testing.TB, config string) *Place {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	Must(t, err)
	root, home := filepath.Join(dir, "blog"), filepath.Join(dir, "beside")
	Must(t, os.Mkdir(root, 0o755), os.Mkdir(home, 0o700))
	p := &Place{Root: root, Env: []string{"XDG_STATE_HOME=" + filepath.Join(dir, "state"), "HOME=" + home, "GORACE=" + goRace, "PATH=" + os.Getenv("PATH")}}
	p.configure(t, config)
	return p
}

// Options say how the sample application is worked on.
type Options struct {
	Pace float64 // of the agents; 0: nobody waits
	Run  string  // lines of the configuration under "run"
}

// Sample is the sample application, with scripted agents that change it.
func Sample(t testing.TB, o Options) *Place {
	t.Helper()
	p := Empty(t, "")
	Must(t, os.Remove(p.config()), sample.Write(p.Root))
	home, _ := Lookup(p.Env)("HOME")
	script, err := sample.Script(o.Pace)
	Must(t, err)
	exe, err := os.Executable()
	Must(t, err)
	agent, said := filepath.Join(home, scripted.Program), filepath.Join(home, "script.yaml")
	Must(t, os.Symlink(exe, agent), os.WriteFile(said, script, 0o600))
	p.Env = append(p.Env, scripted.ScriptVariable+"="+said)
	p.configure(t, fmt.Sprintf(`gate: {allowed_write_paths: [app, test, config]}
agent: {command: [%q], caches: [%q]}
run:
  test_command: %s {path}
`, agent, home, sample.Test)+o.Run)
	return p
}

func (p *Place) config() string { return filepath.Join(p.Root, "lockkeeper.yaml") }

func (p *Place) configure(t testing.TB, config string) {
	t.Helper()
	Must(t, os.WriteFile(p.config(), []byte(config), 0o644))
}

// Lookup finds variables in an environment.
func Lookup(env []string) func(name string) (string, bool) {
	return func(name string) (string, bool) {
		for _, entry := range slices.Backward(env) { // the last one counts
			if value, ok := strings.CutPrefix(entry, name+"="); ok {
				return value, true
			}
		}
		return "", false
	}
}

// Open makes the codebase lockable and opens it for as long as the test runs.
func (p *Place) Open(t testing.TB) *app.App {
	t.Helper()
	s := app.Settings{Dir: p.Root, Env: Lookup(p.Env)}
	_, err := app.Init(t.Context(), s, app.InitOptions{})
	Must(t, err)
	a, err := app.Open(t.Context(), s)
	Must(t, err)
	t.Cleanup(func() { Must(t, a.Close()) })
	return a
}

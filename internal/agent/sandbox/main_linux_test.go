package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"lockkeeper/internal/git/gittest"
	"lockkeeper/internal/machine/machinetest"
)

// helperArg makes the test binary run a command that a shell cannot run.
const helperArg = "@test-helper"

// ownVariable identifies the run of the tests to helpers.
const ownVariable = "LOCKKEEPER_TEST_RUN"

// ownGrant returns the id of a grant of this run of the tests. Leftover processes of a grant are
// found on the whole machine and killed, so two runs must not share an id.
func ownGrant(grant string) string { return os.Getenv(ownVariable) + grant }

func TestMain(m *testing.M) {
	if os.Getenv(ownVariable) == "" {
		os.Setenv(ownVariable, fmt.Sprint(os.Getpid(), "-"))
	}
	if handled, code := Main(os.Args); handled {
		os.Exit(code)
	}
	if len(os.Args) > 2 && os.Args[1] == helperArg {
		os.Exit(helper(os.Args[2], os.Args[3:]))
	}
	// Under the race detector every confined command would wait a second at its end.
	os.Setenv("GORACE", "atexit_sleep_ms=0")
	gittest.Alone()
	goleak.VerifyTestMain(m)
}

// levels returns all ways to confine a command, best first. Each must enforce its claims alone.
func levels() map[string]Level {
	v := landlockVersion()
	return map[string]Level{
		"landlock and namespaces":        {Landlock: v, Namespaces: true},
		"landlock and user's namespaces": {Landlock: v, Namespaces: true, User: true},
		"landlock":                       {Landlock: v},
		"namespaces":                     {Namespaces: true},
		"user's namespaces":              {Namespaces: true, User: true},
	}
}

// eachLevel runs a test under every level that works on this machine.
func eachLevel(t *testing.T, test func(t *testing.T, l Level)) {
	for name, l := range levels() {
		t.Run(name, func(t *testing.T) {
			needLevel(t, l)
			test(t, l)
		})
	}
}

// found caches the results of trials of levels, because many tests need them.
var found sync.Map

func needLevel(t *testing.T, l Level) {
	t.Helper()
	if !l.On() {
		machinetest.Lacks(t, "this kernel has no Landlock")
	}
	why, known := found.Load(l)
	if !known {
		said, err := runTrial(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		why, _ = found.LoadOrStore(l, said)
	}
	if why != "" {
		machinetest.Lacks(t, "not here: %s", why)
	}
}

// best returns the best level of this machine.
func best(t *testing.T) Level {
	t.Helper()
	l, err := Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !l.HoldsWrites() {
		machinetest.Lacks(t, "no sandbox here: %s", l.Missing)
	}
	return l
}

// A scene has a shared tree that commands may read, a store that is not listed for them, and a
// workspace in another directory.
type scene struct {
	t                                 *testing.T
	dir, root, store, workspace, temp string
	env                               []string // additional variables for its commands
}

func newScene(t *testing.T) *scene {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{t: t, dir: dir, root: dir + "/root", store: dir + "/store", workspace: dir + "/work/tree", temp: dir + "/work/tmp"}
	for _, d := range []string{s.store, s.root + "/sub", s.root + "/empty", s.workspace, s.temp} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s.put(s.root+"/file", "shared")
	s.put(s.root+"/sub/deep", "shared")
	s.put(s.store+"/state.db", "secret")
	s.put(s.workspace+"/file", "mine")
	return s
}

func (s *scene) put(path, text string) {
	s.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) confinement() Confinement {
	return Confinement{Write: []string{s.workspace, s.temp}, Read: []string{s.root}}
}

// wrap confines a command to the workspace.
func (s *scene) wrap(l Level, argv ...string) []string {
	s.t.Helper()
	wrapped, err := Wrap(l, s.confinement(), argv)
	if err != nil {
		s.t.Fatal(err)
	}
	return wrapped
}

// run runs a confined command in the workspace.
func (s *scene) run(l Level, argv ...string) (said string, code int) {
	s.t.Helper()
	return s.start(s.wrap(l, argv...))
}

func (s *scene) start(argv []string) (said string, code int) {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = s.workspace, append(Environ(os.Environ(), s.temp), s.env...)
	return s.finish(cmd)
}

// finish runs a command to its end.
func (s *scene) finish(cmd *exec.Cmd) (said string, code int) {
	s.t.Helper()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		s.t.Fatal(err)
	}
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return out.String(), 128 + int(status.Signal())
	}
	return out.String(), status.ExitStatus()
}

// shell runs a confined script that must succeed.
func (s *scene) shell(l Level, script string, args ...string) string {
	s.t.Helper()
	said, code := s.run(l, append([]string{"sh", "-ec", script}, args...)...)
	if code != 0 {
		s.t.Errorf("%s: code %d: %s", script, code, said)
	}
	return said
}

// shared describes the shared tree with everything that can be changed in it.
func (s *scene) shared() string {
	s.t.Helper()
	out, err := exec.CommandContext(s.t.Context(), "sh", "-c",
		`cd "$0" && find . -printf '%p %y %m %u %n %T@ %l\n' | sort && find . -type f -exec sha256sum {} + | sort`, s.root).CombinedOutput()
	if err != nil {
		s.t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

func helperArgv(mode string, args ...string) []string {
	return append([]string{self, helperArg, mode}, args...)
}

func helper(mode string, args []string) int {
	switch mode {
	case "attack":
		return attack(args[0], args[1], args[2:])
	case "escape":
		return escape(args[0])
	case "grope":
		return grope()
	case "pty":
		return ownTerminal()
	case "rename":
		return renameEach(args)
	case "supervise":
		return supervise(args)
	}
	panic("unknown helper: " + strings.Join(append([]string{mode}, args...), " "))
}

//go:build agents

package agents_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"lockkeeper/internal/agent"
	"lockkeeper/internal/agent/sandbox"
	"lockkeeper/internal/agent/scriptedapi"
	"lockkeeper/internal/agent/toolchain"
	"lockkeeper/internal/machine/machinetest"
	"lockkeeper/internal/machine/process"
)

// The variables that name the programs to run; scripts/agents sets them.
const (
	claudeVariable = "LOCKKEEPER_TEST_CLAUDE"
	codexVariable  = "LOCKKEEPER_TEST_CODEX"
	geminiVariable = "LOCKKEEPER_TEST_GEMINI"
)

// programOf is the real agent program that a variable names.
func programOf(t *testing.T, variable string) string {
	t.Helper()
	name := os.Getenv(variable)
	if name == "" {
		t.Fatalf("%s names no program; `make test-agents` installs one", variable)
	}
	program, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return program
}

// claudeProgram is the real Claude Code.
func claudeProgram(t *testing.T) string {
	t.Helper()
	return programOf(t, claudeVariable)
}

// longest bounds every call of these tests. One takes a second, and several on a machine
// that is busy.
const longest = 2 * time.Minute

// A stage has what calls of Claude Code need: the program, an API, and private directories
// without a login.
type stage struct {
	program string
	api     *scriptedapi.Server

	root   string // of all these, and free for what a test adds
	dir    string // where it works: root/runs/1/work
	home   string // its home
	temp   string // its temporary files
	traces string // what it was asked and said, out of its reach

	mark  string // a variable in the environment of everything it starts
	calls int

	stopAt string // words of a demonstration at which it is interrupted
}

// newStage makes a stage for Claude Code that plays a script. The script may name places on
// it, of which it is given the root.
func newStage(t *testing.T, script func(root string) []scriptedapi.Play) *stage {
	t.Helper()
	return stageFor(t, claudeProgram(t), script)
}

// stageFor makes a stage for any program.
func stageFor(t *testing.T, program string, script func(root string) []scriptedapi.Play) *stage {
	t.Helper()
	s := &stage{program: program, root: t.TempDir()}
	for name, dir := range map[string]*string{"runs/1/work": &s.dir, "home": &s.home, "temp": &s.temp, "traces": &s.traces} {
		*dir = filepath.Join(s.root, name)
		if err := os.MkdirAll(*dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s.api = scriptedapi.Start(t, script(s.root)...)
	s.mark = "LOCKKEEPER_TEST_MARK=" + s.root
	return s
}

// plays is a script that names no places.
func plays(list ...scriptedapi.Play) func(string) []scriptedapi.Play {
	return func(string) []scriptedapi.Play { return list }
}

// play is a script for any prompt.
func play(steps ...scriptedapi.Step) func(string) []scriptedapi.Play {
	return plays(scriptedapi.Play{Steps: steps})
}

// use is a step that uses tools.
func use(tools ...scriptedapi.Tool) scriptedapi.Step { return scriptedapi.Step{Tools: tools} }

// environment is that of Claude Code: it reaches nothing but the API, and tries a request
// again once. IS_SANDBOX lets root skip permissions.
func (s *stage) environment() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.home, "TMPDIR=" + s.temp, "CLAUDE_CODE_TMPDIR=" + s.temp, "LANG=C", "IS_SANDBOX=1",
		"ANTHROPIC_BASE_URL=" + s.api.URL, "ANTHROPIC_API_KEY=not-a-real-key", "CLAUDE_CODE_MAX_RETRIES=1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_TELEMETRY=1", s.mark}
}

// request asks for something, with every permission.
func (s *stage) request(prompt string) agent.Request {
	return agent.Request{Prompt: prompt, Dir: s.dir, Env: s.environment(), Permission: agent.PermitAll}
}

// confinement is what a sandboxed call sees.
func (s *stage) confinement() sandbox.Confinement {
	found := toolchain.Find(os.LookupEnv, s.program)
	return sandbox.Confinement{Write: []string{s.dir, s.home, s.temp}, Read: found.Read}
}

// options are those of a call under a level of the sandbox.
func (s *stage) options(level sandbox.Level) agent.Options {
	return agent.Options{Run: confined(level, s.confinement()), Timeout: longest}
}

// call makes a call, of which nothing may be left when it is over.
func (s *stage) call(ctx context.Context, t *testing.T, r agent.Request, o agent.Options) (agent.Result, error) {
	t.Helper()
	s.calls++
	trace := filepath.Join(s.traces, fmt.Sprint(s.calls))
	res, err := agent.Call(ctx, agent.Claude{Argv: []string{s.program}}, r, agent.Files{Output: trace + ".jsonl", Log: trace + ".log"}, o)
	if left := running(t, s.mark); len(left) > 0 {
		t.Errorf("still running: %s", strings.Join(left, ", "))
	}
	return res, err
}

// said is the whole output of the last call, for messages.
func (s *stage) said(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.traces, fmt.Sprint(s.calls)+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// grants numbers the grants of this test process, of which each runs one command.
var grants atomic.Int64

// supervised runs a command as the program does, under a grant of its own.
func supervised(ctx context.Context, c agent.Command) (exit agent.Exit, err error) {
	exit.Code, err = process.Run(ctx, process.Command{Argv: c.Argv, Dir: c.Dir, Env: c.Env, Stdin: c.Stdin, Stdout: c.Stdout, Stderr: c.Stderr,
		Grant: fmt.Sprintf("g-agents-%d-%d", os.Getpid(), grants.Add(1)), KillAfter: time.Second, Killed: func(s syscall.Signal) { exit.Signal = s }})
	return exit, err
}

// confined runs a command in a sandbox.
func confined(level sandbox.Level, c sandbox.Confinement) agent.Runner {
	return func(ctx context.Context, command agent.Command) (agent.Exit, error) {
		argv, err := sandbox.Wrap(level, c, command.Argv)
		if err != nil {
			return agent.Exit{}, err
		}
		command.Argv = argv
		return supervised(ctx, command)
	}
}

// probe finds once what this machine offers.
var probe = sync.OnceValues(func() (sandbox.Level, error) { return sandbox.Probe(context.Background()) })

// machine is the sandbox that this machine offers. A test that needs one is skipped where
// there is none.
func machine(t *testing.T) sandbox.Level {
	t.Helper()
	level, err := probe()
	if err != nil {
		t.Fatal(err)
	}
	if !level.HoldsWrites() {
		machinetest.Lacks(t, "a sandbox that holds writes: %s (%s)", level, level.Missing)
	}
	return level
}

// running lists the processes whose environment or arguments hold a mark.
func running(t *testing.T, mark string) (list []string) {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		// One that ends meanwhile has nothing to read any more.
		environ, _ := os.ReadFile(filepath.Join(dir, "environ"))
		cmdline, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		if strings.Contains(string(environ), mark) || strings.Contains(string(cmdline), mark) {
			list = append(list, fmt.Sprintf("%s %q", filepath.Base(dir), cmdline))
		}
	}
	return list
}

// write makes a file.
func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// read is the content of a file.
func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

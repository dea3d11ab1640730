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

// Environment variables with the paths of the programs; scripts/agents sets them.
const (
	claudeVariable = "LOCKKEEPER_TEST_CLAUDE"
	codexVariable  = "LOCKKEEPER_TEST_CODEX"
	geminiVariable = "LOCKKEEPER_TEST_GEMINI"

	opencodeVariable = "LOCKKEEPER_TEST_OPENCODE"
)

// programOf returns the real agent program that a variable names.
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

// claudeProgram returns the path of the real Claude Code.
func claudeProgram(t *testing.T) string {
	t.Helper()
	return programOf(t, claudeVariable)
}

// longest is the time limit of every call. A call takes about a second, and longer on a busy
// machine.
const longest = 2 * time.Minute

// A stage has everything that calls of Claude Code need: the program, an API, and private
// directories without a login.
type stage struct {
	program string
	api     *scriptedapi.Server

	root   string // parent of the directories below; tests may add files
	dir    string // working directory: root/runs/1/work
	home   string // home directory
	temp   string // temporary files
	traces string // prompts and output, which the agent cannot reach

	mark  string // a variable in the environment of all its processes
	calls int

	stopAt string // the output at which a demonstration is interrupted
}

// newStage returns a stage on which Claude Code plays a script. The script gets the root of the
// stage, so that it can name paths.
func newStage(t *testing.T, script func(root string) []scriptedapi.Play) *stage {
	t.Helper()
	return stageFor(t, claudeProgram(t), script)
}

// stageFor is newStage for any program.
func stageFor(t *testing.T, program string, script func(root string) []scriptedapi.Play) *stage {
	t.Helper()
	s := &stage{program: program, root: t.TempDir()}
	for name, dir := range map[string]*string{"runs/1/work": &s.dir, "home": &s.home, "temp": &s.temp, "traces": &s.traces} {
		*dir = filepath.Join(s.root, name)
		if err := os.MkdirAll(*dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s.api = scriptedapi.StartIn(t, s.dir, script(s.root)...)
	s.mark = "LOCKKEEPER_TEST_MARK=" + s.root
	return s
}

// plays returns a script that does not depend on the root.
func plays(list ...scriptedapi.Play) func(string) []scriptedapi.Play {
	return func(string) []scriptedapi.Play { return list }
}

// play returns a script for any prompt.
func play(steps ...scriptedapi.Step) func(string) []scriptedapi.Play {
	return plays(scriptedapi.Play{Steps: steps})
}

// use returns a step that uses tools.
func use(tools ...scriptedapi.Tool) scriptedapi.Step { return scriptedapi.Step{Tools: tools} }

// environment returns the environment of Claude Code: it reaches only the API and retries a
// request once. IS_SANDBOX lets root skip permissions.
func (s *stage) environment() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.home, "TMPDIR=" + s.temp, "CLAUDE_CODE_TMPDIR=" + s.temp, "LANG=C", "IS_SANDBOX=1",
		"ANTHROPIC_BASE_URL=" + s.api.URL, "ANTHROPIC_API_KEY=not-a-real-key", "CLAUDE_CODE_MAX_RETRIES=1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_TELEMETRY=1", s.mark}
}

// request returns a request with every permission.
func (s *stage) request(prompt string) agent.Request {
	return agent.Request{Prompt: prompt, Dir: s.dir, Env: s.environment(), Permission: agent.PermitAll}
}

// confinement returns what a sandboxed call can see.
func (s *stage) confinement() sandbox.Confinement {
	found := toolchain.Find(os.LookupEnv, s.program)
	return sandbox.Confinement{Write: []string{s.dir, s.home, s.temp}, Read: found.Read}
}

// options returns the options of a call at a level of the sandbox.
func (s *stage) options(level sandbox.Level) agent.Options {
	return agent.Options{Run: confined(level, s.confinement()), Timeout: longest}
}

// call makes a call and checks that it leaves no process.
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

// said returns the whole output of the last call, for messages.
func (s *stage) said(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.traces, fmt.Sprint(s.calls)+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// grants numbers the grants of this test process. Each grant runs one command.
var grants atomic.Int64

// supervised runs a command under its own grant, as the program does.
func supervised(ctx context.Context, c agent.Command) (exit agent.Exit, err error) {
	exit.Code, err = process.Run(ctx, process.Command{Argv: c.Argv, Dir: c.Dir, Env: c.Env, Stdin: c.Stdin, Stdout: c.Stdout, Stderr: c.Stderr,
		Grant: fmt.Sprintf("g-agents-%d-%d", os.Getpid(), grants.Add(1)), KillAfter: time.Second, Killed: func(s syscall.Signal) { exit.Signal = s }})
	return exit, err
}

// confined returns a runner that runs commands in a sandbox.
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

// probe finds the sandbox level of this machine, once.
var probe = sync.OnceValues(func() (sandbox.Level, error) { return sandbox.Probe(context.Background()) })

// machine returns the sandbox level of this machine. It skips the test if there is none.
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

// running returns the processes whose environment or arguments contain a mark.
func running(t *testing.T, mark string) (list []string) {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		// A process that has just ended has no files to read.
		environ, _ := os.ReadFile(filepath.Join(dir, "environ"))
		cmdline, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		if strings.Contains(string(environ), mark) || strings.Contains(string(cmdline), mark) {
			list = append(list, fmt.Sprintf("%s %q", filepath.Base(dir), cmdline))
		}
	}
	return list
}

// write creates a file.
func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// read returns the content of a file.
func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockkeeper/internal/machine/process"
)

// runSupervised returns a Runner that runs a command as the program does, under a grant.
func runSupervised(grant string) Runner {
	return func(ctx context.Context, c Command) (exit Exit, err error) {
		exit.Code, err = process.Run(ctx, process.Command{Argv: c.Argv, Dir: c.Dir, Env: c.Env, Stdin: c.Stdin, Stdout: c.Stdout, Stderr: c.Stderr,
			Grant: grant, KillAfter: 300 * time.Millisecond, Killed: func(s syscall.Signal) { exit.Signal = s }})
		return exit, err
	}
}

// running counts the processes with a mark in their environment.
func running(t *testing.T, mark string) (n int) {
	t.Helper()
	list, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range list {
		if env, err := os.ReadFile(file); err == nil && strings.Contains(string(env), mark) {
			n++
		}
	}
	return n
}

// When a call returns, no process of its agent is left, even if the agent started daemons or
// ignored signals.
//
// shows: GP-15
func TestNothingIsLeft(t *testing.T) {
	for name, test := range map[string]struct {
		script string
		want   error
	}{
		"a daemon":             {"calls:\n- steps:\n  - spawn: 5m\n  result: {text: done}", nil},
		"a daemon of the dead": {"calls:\n- steps:\n  - spawn: 5m\n  - die: KILL", &Error{Kind: Crashed}},
		"one that hangs":       {"calls:\n- steps:\n  - spawn: 5m\n  - hang: true", &Error{Kind: TimedOut}},
		"a stubborn one":       {"calls:\n- stubborn: true\n  steps:\n  - sleep: 5m", &Error{Kind: TimedOut}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newScriptedCall(t, test.script)
			mark := fmt.Sprintf("MARK=%s-%d", t.Name(), os.Getpid())
			c.request.Env = append(c.request.Env, mark)
			_, err := Call(t.Context(), c.adapter, c.request, c.files, Options{Run: runSupervised("g-agent-" + name), Timeout: 1500 * time.Millisecond})
			if !sameType(err, test.want) {
				t.Errorf("%T %v; want %T", err, err, test.want)
			}
			if n := running(t, mark); n > 0 {
				t.Errorf("%d processes are left", n)
			}
		})
	}
	c := newScriptedCall(t, "calls:\n- {}")
	c.adapter = Claude{Argv: []string{"no-such-agent-program"}}
	_, err := Call(t.Context(), c.adapter, c.request, c.files, Options{Run: runSupervised("g-agent-none")})
	if KindOf(err) != Refused {
		t.Errorf("%T %v", err, err)
	}
}

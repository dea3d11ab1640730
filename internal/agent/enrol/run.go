package enrol

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lockkeeper/internal/project/protect"
)

// Said is the answer of a hook.
type Said struct {
	Code     int // exit code; 0: Out decides; 2: the hook refuses; -1: the hook was killed
	Out, Err string
}

// Refuses reports whether the answer is a refusal of ours, not only a failure that the host
// treats as one.
func (s Said) Refuses() bool { return strings.Contains(s.Reason(), "REFUSED ") }

// Reason returns why a hook refuses, or "" if it lets the call through: a denial on standard
// output, or exit code 2 with a text on standard error.
func (s Said) Reason() string {
	if s.Code == 2 {
		return s.Err
	}
	var answer struct {
		Decision string `json:"decision"`
		Reason   string `json:"reason"`
		Specific struct {
			Decision string `json:"permissionDecision"`
			Reason   string `json:"permissionDecisionReason"`
		} `json:"hookSpecificOutput"`
	}
	switch {
	case s.Code != 0 || json.Unmarshal([]byte(s.Out), &answer) != nil:
	case answer.Decision == "deny":
		return answer.Reason
	case answer.Specific.Decision == "deny":
		return answer.Specific.Reason
	}
	return ""
}

// patience limits the time for an answer. The timeout registered with hosts is 30 seconds.
const patience = 20 * time.Second

// Run runs a hook as its host would: with a shell, in the codebase, with the call on standard
// input.
func (s Site) Run(ctx context.Context, k Hook, call []byte) (Said, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", k.Command)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = s.Root, s.environ(), bytes.NewReader(call), &out, &errs
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) {
		err = nil
	}
	if err != nil {
		return Said{}, fmt.Errorf("run %q: %w", k.Command, err)
	}
	return Said{cmd.ProcessState.ExitCode(), out.String(), errs.String()}, nil
}

// deciding lists the variables that decide which program a hook starts and whose locks it uses.
func deciding() []string { return []string{"PATH", "HOME", "XDG_STATE_HOME", "LOCKKEEPER_STORE"} }

// environ returns the environment of this process, with the deciding variables of the site.
func (s Site) environ() []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(deciding(), name)
	})
	for _, name := range deciding() {
		if value, known := s.Env(name); known {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// Responds runs a hook that precedes a tool call with an invalid call, which it must refuse. That
// touches neither locks nor files. wrong says what failed, or is empty.
func (s Site) Responds(ctx context.Context, k Hook) (wrong string, err error) {
	said, err := s.Run(ctx, k, []byte("{}"))
	switch {
	case err != nil:
		return "", err
	case said.Refuses():
		return "", nil
	case said.Code == 2:
		return "its hook program does not run, so every write is refused: " + firstLine(said.Err), nil
	}
	return fmt.Sprintf("its hook program does not check writes, so every write is allowed: exit status %d: %s", said.Code, firstLine(said.Err)), nil
}

// RespondsBelow does what Responds does, in a subdirectory of the codebase.
func (s Site) RespondsBelow(ctx context.Context, k Hook) (wrong string, err error) {
	below := s
	below.Root = filepath.Join(s.Root, protect.OwnDir)
	return below.Responds(ctx, k)
}

// Dead also runs the hooks of the other events with an invalid call, because they may start another
// program than the hook before a tool call. It lists the hooks that do nothing, and why.
func (s Site) Dead(ctx context.Context, st Status) (list []string, err error) {
	events := map[string][]string{}
	var commands []Hook
	for _, ev := range st.Host.turns {
		if k := st.hook(ev.name); k != nil && !ev.before {
			if events[k.Command] == nil {
				commands = append(commands, *k)
			}
			events[k.Command] = append(events[k.Command], ev.name)
		}
	}
	for _, k := range commands {
		said, err := s.Run(ctx, k, []byte("{}"))
		if err != nil {
			return nil, err
		}
		if !said.Refuses() {
			list = append(list, fmt.Sprintf("the hook program of %s fails with exit status %d: %s", strings.Join(events[k.Command], ", "), said.Code, firstLine(said.Err)))
		}
	}
	return list, nil
}

// Programs returns the names and versions of the programs that a host's hooks start. It runs only
// known commands, because the effect of others is unknown.
func (s Site) Programs(ctx context.Context, st Status) (list []string, err error) {
	var asked []string
	for _, k := range st.Hooks {
		if k.Differs != "" || slices.Contains(asked, k.Command) {
			continue
		}
		asked = append(asked, k.Command)
		k.Command = k.asksVersion()
		said, err := s.Run(ctx, k, nil)
		if err != nil {
			return nil, err
		}
		answer := firstLine(said.Out)
		if said.Code != 0 {
			answer = fmt.Sprintf("a program of unknown version (exit status %d: %s)", said.Code, firstLine(said.Err))
		}
		if !slices.Contains(list, answer) {
			list = append(list, answer)
		}
	}
	return list, nil
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if line == "" {
		return "it said nothing"
	}
	return line
}

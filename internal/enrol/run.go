package enrol

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Said is what a hook answered.
type Said struct {
	Code     int // 2 refuses; -1: it did not end by itself
	Out, Err string
}

// Refuses reports whether the answer is a refusal of ours, and not only a failure that the
// host takes for one.
func (s Said) Refuses() bool { return s.Code == 2 && strings.Contains(s.Err, "REFUSED ") }

// patience is how long an answer may take. Hosts are told 30 seconds.
const patience = 20 * time.Second

// Run runs a hook as its host would: by a shell, in the codebase, with the call on its
// standard input.
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

// environ is that of this process, with what decides which program is found and whose
// state it uses as the site has it.
func (s Site) environ() []string {
	env := os.Environ()
	for _, name := range []string{"PATH", "HOME", "XDG_STATE_HOME", "LOCKKEEPER_STORE"} {
		if value, known := s.Env(name); known {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// Responds tries a hook with a call that it has to refuse because nobody can understand it.
// It touches neither locks nor files. The text says what is wrong; it is empty when nothing
// is.
func (s Site) Responds(ctx context.Context, k Hook) (wrong string, err error) {
	said, err := s.Run(ctx, k, []byte("{}"))
	switch {
	case err != nil:
		return "", err
	case said.Refuses():
		return "", nil
	case said.Code == 2:
		return "its program does not run, so that every write is refused: " + firstLine(said.Err), nil
	}
	return fmt.Sprintf("its program does not check, so that every write is let through: it ended with %d: %s", said.Code, firstLine(said.Err)), nil
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if line == "" {
		return "it said nothing"
	}
	return line
}

package gitcmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"

	"lockkeeper"
)

// A Command runs git in a directory.
type Command struct {
	Dir      string
	Env      []string
	Settings []string // options before the subcommand
}

// Patience is how long git may take to end after its context has ended.
const Patience = 5 * time.Second

// An Error has the exit code and the message of a failed git command.
type Error struct {
	Args []string
	Exit int
	Says string
}

func (e *Error) Error() string {
	if e.Says == "" {
		return fmt.Sprintf("git %s ended with code %d", e.Args[0], e.Exit)
	}
	return fmt.Sprintf("git %s says: %s", e.Args[0], e.Says)
}

// Line returns the output of git without the final newline.
func (c Command) Line(ctx context.Context, args ...string) (string, error) {
	out, err := c.Output(ctx, "", args...)
	return strings.TrimSuffix(out, "\n"), err
}

// Output runs git with an input and returns its output.
func (c Command) Output(ctx context.Context, in string, args ...string) (string, error) {
	var out bytes.Buffer
	err := c.Run(ctx, strings.NewReader(in), &out, args...)
	return out.String(), err
}

// Run runs git between a reader, which may be nil, and a writer. If git fails by itself, the
// error is an *Error.
func (c Command) Run(ctx context.Context, in io.Reader, out io.Writer, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", slices.Concat(c.Settings, args)...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = c.Dir, c.Env, Patience
	// SIGKILL would make git leave its locks.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	var complaint tail
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, &complaint
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay): // git has ended, but a hook left a process running
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("git %s was stopped: %w", args[0], context.Cause(ctx))
	case errors.Is(err, exec.ErrNotFound):
		return &lockkeeper.InputError{Field: "git repository", Value: c.Dir, Reason: "git is not installed, or not in PATH", Next: "install git"}
	case errors.As(err, &exit):
		return &Error{Args: args, Exit: exit.ExitCode(), Says: complaint.text()}
	}
	return err
}

// A tail keeps the end of the text that is written to it.
type tail struct{ kept []byte }

const tailSize = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - tailSize; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

// text returns the printable text without git's hints.
func (t *tail) text() string {
	var lines []string
	for line := range strings.Lines(string(t.kept)) {
		line = strings.TrimSpace(Printable(line))
		if line != "" && !strings.HasPrefix(line, "hint:") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// Printable removes control characters and invisible ones. Tabs become spaces.
func Printable(s string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c == '\t':
			return ' '
		case unicode.Is(unicode.C, c), c == '\u2028', c == '\u2029':
			return -1
		}
		return c
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

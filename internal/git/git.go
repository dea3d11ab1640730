package git

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

	"lockkeeper"
	"lockkeeper/internal/git/gitenv"
)

// A git runs commands in a directory.
type git struct {
	dir string
	env []string
}

// gitPatience is how long git may take to end after it was told to.
const gitPatience = 5 * time.Second

// terminalVariables let git or the signer talk to a person at a terminal, or describe
// another operation in the reflog.
var terminalVariables = []string{"GIT_REFLOG_ACTION", "GPG_TTY"}

// newGit returns a git that finds its repository only by its directory, never prompts, and
// writes English messages. Hooks keep their charset.
func newGit(dir string, env []string) git {
	own := slices.DeleteFunc(gitenv.Outside(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(terminalVariables, name)
	})
	return git{dir: dir, env: append(own, "PWD="+dir, "GIT_EDITOR=:", "GIT_TERMINAL_PROMPT=0", "LANGUAGE=C")}
}

// settings keep git from starting programs that were not requested, and from leaving out
// submodules because the person prefers not to see them. Git writes messages unchanged and
// commits by their full names.
var settings = []string{"-c", "core.fsmonitor=false", "-c", "diff.ignoreSubmodules=none", "-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "i18n.commitEncoding=UTF-8", "-c", "core.abbrev=no"}

// A gitError has the exit code and the message of a git that failed.
type gitError struct {
	args []string
	exit int
	says string
}

func (e *gitError) Error() string {
	if e.says == "" {
		return fmt.Sprintf("git %s ended with code %d", e.args[0], e.exit)
	}
	return fmt.Sprintf("git %s says: %s", e.args[0], e.says)
}

// exitOf returns the exit code of a git that failed by itself; otherwise 0.
func exitOf(err error) int {
	var failed *gitError
	if errors.As(err, &failed) {
		return failed.exit
	}
	return 0
}

// saysOf returns the message of a git that failed.
func saysOf(err error) string {
	var failed *gitError
	if errors.As(err, &failed) {
		return failed.says
	}
	return ""
}

// ask returns the output of git without the final newline.
func (g git) ask(ctx context.Context, args ...string) (string, error) {
	out, err := g.tell(ctx, "", args...)
	return strings.TrimSuffix(out, "\n"), err
}

// tell runs git with an input and returns its output.
func (g git) tell(ctx context.Context, in string, args ...string) (string, error) {
	var out bytes.Buffer
	err := g.run(ctx, strings.NewReader(in), &out, args...)
	return out.String(), err
}

func (g git) run(ctx context.Context, in io.Reader, out io.Writer, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", slices.Concat(settings, args)...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = g.dir, g.env, gitPatience
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
		return &lockkeeper.InputError{Field: "git repository", Value: g.dir, Reason: "git is not installed, or not in PATH", Next: "install git"}
	case errors.As(err, &exit):
		return &gitError{args: args, exit: exit.ExitCode(), says: complaint.text()}
	}
	return err
}

// A tail keeps the end of what is written to it.
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
		line = strings.TrimSpace(printable(line))
		if line != "" && !strings.HasPrefix(line, "hint:") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// list encodes fields for git's standard input.
func list(fields []string) string { return strings.Join(fields, "\x00") + "\x00" }

// fields splits the output of git -z.
func fields(out string) []string {
	if out == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
}

// prefixed adds a prefix to each path.
func prefixed(prefix string, paths []string) []string {
	spelled := make([]string, len(paths))
	for i, path := range paths {
		spelled[i] = prefix + path
	}
	return spelled
}

// literal makes a path a pathspec that matches only itself. GIT_LITERAL_PATHSPECS would do
// so too, but hooks inherit it and may use patterns.
const literal = ":(literal)"

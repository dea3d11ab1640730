package cli_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"lockkeeper/internal/project/projecttest"
	"lockkeeper/internal/surface/cli"
	"lockkeeper/internal/surface/cli/term"
)

// sampleConsole returns a terminal in the sample application with the scripted agent.
func sampleConsole(t *testing.T) *console {
	t.Helper()
	p := projecttest.Sample(t, projecttest.Options{})
	d := newConsole(t)
	d.dir, d.env = p.Root, append(d.env, p.Env...)
	d.must(0, "init")
	return d
}

// A terminal shows the screen while a run goes on, and afterwards the news that matter and the
// outcome.
//
// shows: PL-94 SW-84
func TestRunOnATerminal(t *testing.T) {
	d := sampleConsole(t)
	io := &term.IO{In: d.tty, Out: d.tty, Err: d.tty, Dir: d.dir, Env: append(d.env, "NO_COLOR=1"), Now: time.Now}
	if code := cli.Main(context.Background(), io, []string{"run", "--only", "blog/posts", "--auto-decide", "impact>=medium,topics=reject", "--slots", "2", "--budget", "9"}); code != 0 {
		t.Fatalf("ended with %d:\n%s", code, d.sees(""))
	}
	shown := d.sees("controllers: 1 of 1 unit complete, 0 failed; 6 files in 3 batches landed, 0 gaps; ")
	const on, off = "\x1b[?1049h", "\x1b[?1049l"
	before, rest, _ := strings.Cut(shown, on)
	screen, after, _ := strings.Cut(rest, off)
	for text, wants := range map[string][]string{
		before: {"flow controllers: 1 unit: blog/posts\r\n", ", 2 at once; sandbox: ", "budget: $9.00, $0.00 spent so far"},
		screen: {"[Now]", "blog/posts", "agents "},
		after:  {"blog/posts/b3 landed: 1 file,"},
	} {
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("the terminal never showed %q in:\n%q", want, text)
			}
		}
	}
	if at := regexp.MustCompile(`.{0,40}\x1b\[[0-9;]*m.{0,20}`).FindString(screen + after); at != "" {
		t.Errorf("it was colored, against NO_COLOR: %q", at)
	}
	_, last, _ := strings.Cut(after, "controllers: 1 of 1 unit")
	if strings.Contains(last, "\x1b") {
		t.Errorf("after the end something was drawn: %q", last)
	}
}

// With --plain, a terminal gets the lines of a pipe.
func TestPlainRunOnATerminal(t *testing.T) {
	d, shared := planConsole(t)
	if err := os.WriteFile(filepath.Join(shared, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	io := &term.IO{In: d.tty, Out: d.tty, Err: d.tty, Dir: d.dir, Env: d.env, Now: time.Now}
	if code := cli.Main(context.Background(), io, []string{"run", "--plan", "tasks.yaml", "--only", "one", "--no-ui", "--plain"}); code != 0 {
		t.Fatalf("ended with %d:\n%s", code, d.sees(""))
	}
	shown := d.sees("1 of 1 task complete")
	if _, run, _ := strings.Cut(shown, "flow tasks"); strings.Contains(run, "\x1b[?") || !strings.Contains(run, " +tasks/one apply started\r\n") {
		t.Errorf("%q", run)
	}
}

// A terminal without support for escape sequences gets plain lines.
func TestRunOnADumbTerminal(t *testing.T) {
	d := sampleConsole(t)
	io := &term.IO{In: d.tty, Out: d.tty, Err: d.tty, Dir: d.dir, Env: append(d.env, "TERM=dumb"), Now: time.Now}
	if code := cli.Main(context.Background(), io, []string{"run", "--only", "blog/posts"}); code != 0 {
		t.Fatalf("ended with %d:\n%s", code, d.sees(""))
	}
	shown := d.sees("next: lockkeeper decide")
	if _, run, _ := strings.Cut(shown, "flow controllers"); strings.Contains(run, "\x1b") || !strings.Contains(run, " blog/posts analyze started\r\n") {
		t.Errorf("%q", run)
	}
}

package cli_test

import (
	"context"
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

// A terminal shows the progress of a run in a live picture. Important news stay above it.
//
// shows: PL-94 SW-84
func TestRunOnATerminal(t *testing.T) {
	d := sampleConsole(t)
	io := &term.IO{In: d.tty, Out: d.tty, Err: d.tty, Dir: d.dir, Env: append(d.env, "NO_COLOR=1"), Now: time.Now}
	if code := cli.Main(context.Background(), io, []string{"run", "--only", "blog/posts", "--auto-decide", "impact>=medium,topics=reject", "--slots", "2", "--budget", "9"}); code != 0 {
		t.Fatalf("ended with %d:\n%s", code, d.sees(""))
	}
	shown := d.sees("controllers: 1 of 1 unit complete, 0 failed; 6 files in 3 batches landed, 0 gaps; ")
	for _, want := range []string{"flow controllers: 1 unit: blog/posts\r\n", ", 2 at once; sandbox: ", "budget: $9.00, $0.00 spent so far",
		"; agents ", "/2, tests ", " of $9.00", "  blog/posts  ■▶··········  ", "A\r\x1b[J", "blog/posts/b3 landed: 1 file,"} {
		if !strings.Contains(shown, want) {
			t.Errorf("the terminal never showed %q:\n%q", want, shown)
		}
	}
	if _, run, _ := strings.Cut(shown, "flow controllers"); strings.Contains(run, "\x1b[1m") {
		t.Error("it was colored, against NO_COLOR")
	}
	_, last, _ := strings.Cut(shown, "controllers: 1 of 1 unit")
	if strings.Contains(last, "\x1b") {
		t.Errorf("after the end something was drawn: %q", last)
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

package process

import (
	"bufio"
	"io"
	"os"
	"testing"
	"time"

	"lockkeeper"
)

// A command that waits for input is idle until it gets some, and a new process shows that it ran.
func TestIdle(t *testing.T) {
	h, err := NewHost("")
	if err != nil {
		t.Fatal(err)
	}
	in, feed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, answers, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	started, done := make(chan lockkeeper.Process, 1), make(chan error, 1)
	go func() {
		_, err := h.Run(t.Context(), Command{Argv: []string{"sh", "-c", "while read -r x; do /bin/echo $x; done"}, Stdin: in, Stdout: answers, Stderr: os.Stderr,
			Grant: "g", Started: func(p lockkeeper.Process) error { started <- p; return nil }})
		done <- err
	}()
	p := <-started
	lines := bufio.NewScanner(out)
	turn := func() {
		t.Helper()
		if _, err := io.WriteString(feed, "x\n"); err != nil || !lines.Scan() {
			t.Fatal(err)
		}
	}
	turn()
	var m *Moment
	for m == nil || !m.Idle() { // until the shell waits again
		if m, err = h.Moment(p, m); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	if same, err := h.Moment(p, m); err != nil || same != m {
		t.Errorf("an idle command has a new moment: %v", err)
	}
	if alone, err := m.Alone(); err != nil || !alone {
		t.Errorf("a shell with pipes has a socket: %v", err)
	}
	turn()
	if m.Idle() {
		t.Error("a command that started a process was idle")
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if !h.WorksIn(p, here) || h.WorksIn(p, t.TempDir()) {
		t.Error("the directory of the command is wrong")
	}
	if err := feed.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if m.Idle() {
		t.Error("a command that ended was idle")
	}
}

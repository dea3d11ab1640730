package cli_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper/internal/surface/cli"
	"lockkeeper/internal/surface/cli/term"
)

// asWorker is the environment variable that makes a copy of this test binary a worker. Its value is the worker's
// directory.
const asWorker = "LOCKKEEPER_TEST_WORKER"

// TestWorkerProcess runs a worker in a process that other tests can kill. On its own, it tests nothing.
func TestWorkerProcess(t *testing.T) {
	dir := os.Getenv(asWorker)
	if dir == "" {
		return
	}
	io := &term.IO{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Dir: dir, Env: os.Environ(), Now: time.Now}
	os.Exit(cli.Main(context.Background(), io, []string{"job", "work", "--slots", "2"}))
}

// startWorker starts a worker that runs until it is stopped, with its output in out. If out is nil, the output
// is discarded.
func (d *console) startWorker(out *os.File) *exec.Cmd {
	d.t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestWorkerProcess$")
	cmd.Env = append(os.Environ(), append(d.env, asWorker+"="+d.dir)...)
	cmd.Stderr = os.Stderr
	if out != nil {
		cmd.Stdout = out
	}
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { // does nothing if the test has ended the worker
		cmd.Process.Kill()
		cmd.Wait()
	})
	return cmd
}

// fifo makes a named pipe and returns a function that waits for a line in it.
func (d *console) fifo(name string) func() string {
	d.t.Helper()
	path := filepath.Join(d.dir, name)
	if err := unix.Mkfifo(path, 0o600); err != nil {
		d.t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0) // also for writing, so that opening does not block
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { f.Close() })
	lines := bufio.NewReader(f)
	return func() string {
		d.t.Helper()
		if err := f.SetReadDeadline(time.Now().Add(hung)); err != nil {
			d.t.Fatal(err)
		}
		line, err := lines.ReadString('\n')
		if err != nil {
			d.t.Fatal(err)
		}
		return strings.TrimSpace(line)
	}
}

// isGone reports whether a process has ended.
func isGone(t *testing.T, pid string) bool {
	t.Helper()
	n, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(n) + "/stat")
	if err != nil {
		return true
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(rest, "Z") || strings.HasPrefix(rest, "X")
}

// If a worker is killed, none of its processes survive, and its items run again.
//
// shows: SW-71 GP-26 DL-80
func TestKilledWorkerLosesNothing(t *testing.T) {
	d := newConsole(t)
	ready := d.fifo("ready")
	const script = `echo tried >>tries
if [ $(wc -l <tries) = 1 ]; then
	sleep 600 & echo $! >ready; echo $$ >ready; wait
fi
echo done at last`
	id := d.must(0, "job", "submit", "--name", "once", "--write", "tries", "--", "sh", "-c", script)
	worker := d.startWorker(nil)
	grandchild, child := ready(), ready()
	if isGone(t, child) || isGone(t, grandchild) {
		t.Fatalf("%s or %s never ran", child, grandchild)
	}
	if err := worker.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	worker.Wait()
	if out := d.must(0, "why", id); !strings.Contains(out, ", which is gone\n") || !strings.Contains(out, " then  returns to the queue by itself when the next worker starts") {
		t.Errorf("why says %s", out)
	}
	d.sees("because no worker is running")
	d.must(1, "job", "retry", id)
	d.sees("and the item returns to the queue by itself when the next worker starts")
	d.must(0, "job", "work", "--until-empty")
	for _, pid := range []string{child, grandchild} {
		if !isGone(t, pid) {
			t.Errorf("process %s of the killed worker still runs", pid)
		}
	}
	if out := d.must(0, "why", id); !strings.HasPrefix(out, "once job, completed") || !strings.Contains(out, "attempt 2/3 ("+id+")") {
		t.Errorf("why says %s", out)
	}
	if out := d.must(0, "job", "output", id); out != "done at last" {
		t.Errorf("the output is %q", out)
	}
	if out := d.must(0, "audit", "--kind", "requeued"); !strings.Contains(out, "once") {
		t.Errorf("the record is %q", out)
	}
	if tries, err := os.ReadFile(filepath.Join(d.dir, "tries")); err != nil || string(tries) != "tried\ntried\n" {
		t.Errorf("it was tried so: %q, %v", tries, err)
	}
}

// A worker shows a failure elsewhere also if the item is retried before the worker looks.
func TestFailureThatWasRetried(t *testing.T) {
	d := newConsole(t)
	d.must(0, "lock", "acquire", "--holder", "ada", "--write", "a")
	shown, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer shown.Close()
	worker := d.startWorker(out)
	out.Close()
	id := d.must(0, "job", "submit", "--name", "blocked", "--write", "a", "--", "true")
	lines := bufio.NewScanner(shown)
	next := func(want string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), want) {
				return
			}
		}
		t.Fatalf("no line with %q", want)
	}
	if err := shown.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	next("waiting: " + id)
	d.must(0, "job", "cancel", id)
	d.must(0, "job", "retry", id)
	next("canceled " + id)
	if err := worker.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	next(" 0 failed")
}

// A running item is canceled only by a person who confirms it.
func TestCancelOfARunningItemNeedsAPerson(t *testing.T) {
	d := newConsole(t)
	ready := d.fifo("ready")
	id := d.must(0, "job", "submit", "--name", "long", "--write", "a", "--", "sh", "-c", "echo $$ >ready; exec sleep 600")
	log, said, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	d.startWorker(said)
	said.Close()
	pid := ready()
	d.agreeing("no", 1, "job", "cancel", id)
	if shown := d.sees("not confirmed; nothing changed"); !strings.Contains(shown, id+" (long) job has run for") {
		t.Errorf("the person was not told what runs:\n%s", shown)
	}
	if isGone(t, pid) {
		t.Error("ended against the answer")
	}
	d.mu.Lock()
	d.shown.Reset()
	d.mu.Unlock()
	d.agreeing("y", 0, "job", "cancel", id, "--reason", "wrong branch")
	if !isGone(t, pid) {
		t.Error("the command still runs")
	}
	if out := d.must(0, "why", id); !strings.Contains(out, "canceled by ada") || !strings.Contains(out, "wrong branch") {
		t.Errorf("why says %s", out)
	}
	d.must(0, "lock", "check", "--write", "a")
	lines := bufio.NewScanner(log)
	for _, want := range []string{"started " + id + " (long) job, attempt 1", "canceled " + id + " (long), by ada"} {
		if !lines.Scan() || !strings.HasPrefix(lines.Text(), want) {
			t.Errorf("the worker said %q instead of %q", lines.Text(), want)
		}
	}
}

// A terminal shows each start and end above one live line, and no escape sequence from a command's output.
func TestWorkerOnATerminal(t *testing.T) {
	d := newConsole(t)
	d.must(0, "job", "submit", "--name", "fine", "--", "true")
	d.sees("next:") // no worker is running
	d.must(0, "job", "submit", "--name", "bad", "--", "sh", "-c", "printf 'x\\033[2Jy'; exit 4")
	io := &term.IO{In: d.tty, Out: d.tty, Err: d.tty, Dir: d.dir, Env: append(d.env, "NO_COLOR=1"), Now: time.Now}
	if code := cli.Main(context.Background(), io, []string{"job", "work", "--until-empty"}); code != 1 {
		t.Fatalf("ended with %d", code)
	}
	shown := d.sees("0 running, 0 queued, 1 done, 1 failed")
	for _, want := range []string{"\r\x1b[K", "started j1 (fine) job, attempt 1\r\n", "done j1 (fine), ", `(bad), `, `exit status 4, last output "x[2Jy"`} {
		if !strings.Contains(shown, want) {
			t.Errorf("the terminal never showed %q:\n%q", want, shown)
		}
	}
	if strings.Contains(shown, "\x1b[2J") {
		t.Errorf("the terminal showed\n%q", shown)
	}
	if code := cli.Main(context.Background(), io, []string{"job", "output", "bad"}); code != 0 {
		t.Fatalf("ended with %d", code)
	}
	if shown := d.sees(`x\x1b[2Jy`); strings.Contains(shown, "\x1b[2J") {
		t.Errorf("the terminal showed\n%q", shown)
	}
}

package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper/internal/surface/cli"
	"lockkeeper/internal/surface/cli/term"
)

// A console is a person at a terminal, in a root of their own.
type console struct {
	t      *testing.T
	dir    string
	env    []string
	person *os.File // the person's end of the terminal
	tty    *os.File

	mu    sync.Mutex
	shown bytes.Buffer
	grown chan struct{} // signaled when the terminal shows more
}

// newConsole opens a pseudo-terminal and creates a root.
func newConsole(t *testing.T) *console {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := person.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var number int
	conn.Control(func(fd uintptr) {
		if err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err == nil {
			number, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 100}); err != nil {
		t.Fatal(err)
	}
	d := &console{t: t, dir: t.TempDir(), person: person, tty: tty, grown: make(chan struct{}, 1),
		env: []string{"XDG_STATE_HOME=" + t.TempDir(), "USER=ada", "TERM=xterm"}}
	var reading sync.WaitGroup
	reading.Go(d.read)
	t.Cleanup(func() {
		tty.Close()
		reading.Wait() // the person's end reports an error once the other is closed
		person.Close()
	})
	d.must(0, "init", "--yes")
	return d
}

func (d *console) read() {
	buf := make([]byte, 4096)
	for {
		n, err := d.person.Read(buf)
		d.mu.Lock()
		d.shown.Write(buf[:n])
		d.mu.Unlock()
		select {
		case d.grown <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// hung is how long a test waits for a state before it fails. It only ends hangs.
const hung = 5 * time.Minute

// sees waits until the terminal shows a text.
func (d *console) sees(text string) string {
	d.t.Helper()
	late := time.After(hung)
	for {
		d.mu.Lock()
		all := d.shown.String()
		d.mu.Unlock()
		if strings.Contains(all, text) {
			return all
		}
		select {
		case <-d.grown:
		case <-late:
			d.t.Fatalf("the terminal never showed %q:\n%s", text, all)
		}
	}
}

// run runs a command, with standard output in a file and the rest on the terminal.
func (d *console) run(args ...string) (int, string) {
	d.t.Helper()
	out, err := os.Create(filepath.Join(d.t.TempDir(), "out"))
	if err != nil {
		d.t.Fatal(err)
	}
	defer out.Close()
	code := cli.Main(context.Background(), &term.IO{In: d.tty, Out: out, Err: d.tty, Dir: d.dir, Env: d.env, Now: time.Now}, args)
	if _, err := out.Seek(0, io.SeekStart); err != nil {
		d.t.Fatal(err)
	}
	text, err := io.ReadAll(out)
	if err != nil {
		d.t.Fatal(err)
	}
	return code, strings.TrimSpace(string(text))
}

func (d *console) must(want int, args ...string) string {
	d.t.Helper()
	code, out := d.run(args...)
	if code != want {
		d.t.Fatalf("lockkeeper %s ended with %d instead of %d: %s", strings.Join(args, " "), code, want, out)
	}
	return out
}

// answering runs a command and types a line when the terminal asks for it.
func (d *console) answering(line string, want int, args ...string) string {
	d.t.Helper()
	return d.answeringTo("to continue, anything else to cancel: ", line, want, args...)
}

// agreeing runs a command that asks whether to continue.
func (d *console) agreeing(line string, want int, args ...string) string {
	d.t.Helper()
	return d.answeringTo("Continue? [y/N] ", line, want, args...)
}

func (d *console) answeringTo(question, line string, want int, args ...string) string {
	d.t.Helper()
	var typing sync.WaitGroup
	typing.Go(func() {
		d.sees(question)
		io.WriteString(d.person, line+"\n")
	})
	out := d.must(want, args...)
	typing.Wait()
	return out
}

// shows: LM-22 LM-24
func TestForceReleaseAsksForTheHoldersName(t *testing.T) {
	d := newConsole(t)
	grant := d.must(0, "lock", "acquire", "--holder", "otter", "--write", "a", "--reason", "big rename")
	d.answering("yes", 1, "lock", "force-release", grant, "--reason", "gone home")
	shown := d.sees("not confirmed; nothing changed")
	for _, fact := range []string{"holds write a", "grant " + grant, "big rename"} {
		if !strings.Contains(shown, fact) {
			t.Errorf("the person was not told %q:\n%s", fact, shown)
		}
	}
	d.must(3, "lock", "check", "--write", "a")
}

// shows: LM-22
func TestForceReleaseByAPerson(t *testing.T) {
	d := newConsole(t)
	grant := d.must(0, "lock", "acquire", "--holder", "otter", "--write", "a")
	d.answering("otter", 0, "lock", "force-release", grant, "--reason", "gone home")
	d.must(0, "lock", "check", "--write", "a")
	audit := d.must(0, "audit", "--json")
	if !strings.Contains(audit, `"kind":"force_released","actor":{"name":"ada`) || !strings.Contains(audit, "gone home") {
		t.Errorf("the record does not say who and why:\n%s", audit)
	}
}

func TestAgentMayNotForceOnATerminal(t *testing.T) {
	d := newConsole(t)
	grant := d.must(0, "lock", "acquire", "--holder", "otter", "--write", "a")
	d.env = append(d.env, "GEMINI_CLI=1")
	d.must(1, "lock", "force-release", grant, "--reason", "mine now")
	d.must(1, "lock", "clear")
	d.must(3, "lock", "check", "--write", "a")
}

// shows: LM-22 LM-23
func TestClearFreesAllThatMayBeFreed(t *testing.T) {
	d := newConsole(t)
	d.must(0, "lock", "acquire", "--holder", "writer", "--policy", "author", "--write", "ch1", "--ttl", "1s")
	for !strings.Contains(d.must(0, "status"), "STALE") {
		runtime.Gosched()
	}
	d.must(0, "lock", "acquire", "--holder", "otter", "--write", "a")
	job := d.must(0, "lock", "acquire", "--holder", "job", "--policy", "dal", "--write", "data")
	out := d.answering("clear", 1, "lock", "clear", "--reason", "power cut")
	shown := d.sees("stale and unclaimed")
	for _, fact := range []string{"(STALE)", "1 stale and 2 active", job} {
		if !strings.Contains(shown, fact) {
			t.Errorf("the person was not told %q:\n%s", fact, shown)
		}
	}
	if !strings.Contains(out, "2 grants released; 1 grant not released") {
		t.Errorf("answered %q", out)
	}
	d.must(0, "lock", "check", "--write", "a", "--write", "ch1")
	d.must(3, "lock", "check", "--write", "data")
}

// shows: LM-24
func TestClearCanceled(t *testing.T) {
	d := newConsole(t)
	d.must(0, "lock", "acquire", "--holder", "otter", "--write", "a")
	d.answering("", 1, "lock", "clear")
	d.sees("not confirmed; nothing changed")
	d.must(3, "lock", "check", "--write", "a")
}

func TestNewWorldNeedsAPerson(t *testing.T) {
	d := newConsole(t)
	d.must(0, "lock", "acquire", "--holder", "otter", "--write", "a")
	if err := os.RemoveAll(filepath.Join(d.dir, ".lockkeeper")); err != nil {
		t.Fatal(err)
	}
	d.must(1, "init")
	d.answering("new locks", 0, "init", "--new-world")
	d.must(0, "lock", "check", "--write", "a")
	d.must(0, "init")
}

func TestNewWorldKeepsWhatIsLeftOfTheOld(t *testing.T) {
	d := newConsole(t)
	d.must(0, "lock", "acquire", "--holder", "otter", "--write", "a")
	if err := os.Remove(filepath.Join(d.dir, ".lockkeeper", "state.db")); err != nil {
		t.Fatal(err)
	}
	d.must(1, "init")
	d.sees("init --new-world")
	d.answering("new locks", 0, "init", "--new-world")
	d.must(0, "lock", "check", "--write", "a")
	if old, err := filepath.Glob(filepath.Join(d.dir, ".lockkeeper.old-*", "space.json")); err != nil || len(old) != 1 {
		t.Errorf("the old marker is at %v %v", old, err)
	}
}

func TestRestoredNeedsAPerson(t *testing.T) {
	d := newConsole(t)
	d.must(0, "lock", "acquire", "--holder", "otter", "--write", "a")
	place := filepath.Join(d.dir, ".lockkeeper")
	if err := errors.Join(os.CopyFS(place+".copy", os.DirFS(place)), os.RemoveAll(place), os.Rename(place+".copy", place)); err != nil {
		t.Fatal(err)
	}
	d.must(1, "status")
	d.answering("no", 1, "init", "--restored")
	d.must(1, "status")
	d.answering("restored", 0, "init", "--restored")
	d.must(3, "lock", "check", "--write", "a")
}

func TestNewWorldCanceled(t *testing.T) {
	d := newConsole(t)
	if err := os.RemoveAll(filepath.Join(d.dir, ".lockkeeper")); err != nil {
		t.Fatal(err)
	}
	d.answering("no", 1, "init", "--new-world")
	if _, err := os.Stat(filepath.Join(d.dir, ".lockkeeper")); err == nil {
		t.Error("new locks were made against the answer")
	}
}

func TestColorOnTerminalsOnly(t *testing.T) {
	d := newConsole(t)
	d.must(0, "lock", "acquire", "--holder", "otter", "--write", "a")
	d.must(3, "lock", "acquire", "--holder", "fox", "--write", "a")
	if shown := d.sees("lockkeeper why"); !strings.Contains(shown, "\x1b[31m") {
		t.Errorf("no color on a terminal:\n%q", shown)
	}
	d.mu.Lock()
	d.shown.Reset()
	d.mu.Unlock()
	d.env = append(d.env, "NO_COLOR=1")
	d.must(3, "lock", "acquire", "--holder", "fox", "--write", "a")
	if shown := d.sees("lockkeeper why"); strings.Contains(shown, "\x1b") {
		t.Errorf("color in spite of NO_COLOR:\n%q", shown)
	}
}

func TestPathsAreShortenedOnTerminalsOnly(t *testing.T) {
	d := newConsole(t)
	long := strings.Repeat("deep/", 30) + "file.rb"
	if err := os.MkdirAll(filepath.Join(d.dir, filepath.Dir(long)), 0o755); err != nil {
		t.Fatal(err)
	}
	d.must(0, "lock", "acquire", "--holder", "otter", "--write", long)
	if out := d.must(0, "status"); !strings.Contains(out, long) {
		t.Errorf("a pipe got a shortened path:\n%s", out)
	}
	code := cli.Main(context.Background(), &term.IO{In: d.tty, Out: d.tty, Err: d.tty, Dir: d.dir, Env: append(d.env, "NO_COLOR=1"), Now: time.Now}, []string{"status"})
	if code != 0 {
		t.Fatal(code)
	}
	shown := d.sees("file.rb")
	if strings.Contains(shown, long) || !strings.Contains(shown, "…") {
		t.Errorf("a terminal of 100 columns got:\n%s", shown)
	}
	if !strings.Contains(d.must(0, "status", "--json"), long) {
		t.Error("JSON got a shortened path")
	}
}

func TestListsAreCutOnTerminalsInStatusAlone(t *testing.T) {
	d := newConsole(t)
	d.env = append(d.env, "NO_COLOR=1")
	args := []string{"lock", "acquire", "--holder", "otter"}
	for i := range 12 {
		args = append(args, "--write", fmt.Sprintf("f%02d", i))
	}
	d.must(0, args...)
	onTerminal := func(args ...string) {
		t.Helper()
		code := cli.Main(context.Background(), &term.IO{In: d.tty, Out: d.tty, Err: d.tty, Dir: d.dir, Env: d.env, Now: time.Now}, args)
		if code != 0 {
			t.Fatal(code)
		}
	}
	onTerminal("status")
	if shown := d.sees("… and 4 more"); strings.Contains(shown, "f11") {
		t.Errorf("status on a terminal:\n%s", shown)
	}
	onTerminal("why", "otter")
	d.sees("write f11")
}

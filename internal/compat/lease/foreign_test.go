package lease_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/internal/compat/lease"
)

// pythonCommand returns a command that runs the foreign tool.
func pythonCommand(t *testing.T, how, path, owner string, env ...string) *exec.Cmd {
	t.Helper()
	program, err := exec.LookPath("python3")
	if err != nil {
		t.Fatalf("python3 is required (make test installs it): %v", err)
	}
	cmd := exec.Command(program, filepath.Join("testdata", "lease.py"), how, path, owner, "1800", "120")
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	return cmd
}

// A python is a process of the foreign tool that runs commands from its standard input.
type python struct {
	t       *testing.T
	in      io.Writer
	answers *bufio.Scanner
}

func (s *scene) python(owner string) *python {
	s.t.Helper()
	must(s.t, os.MkdirAll(filepath.Dir(s.path), 0o755))
	cmd := pythonCommand(s.t, "obey", s.path, owner)
	in, err := cmd.StdinPipe()
	must(s.t, err)
	out, err := cmd.StdoutPipe()
	must(s.t, err)
	must(s.t, cmd.Start())
	s.t.Cleanup(func() {
		in.Close()
		must(s.t, cmd.Wait())
	})
	return &python{s.t, in, bufio.NewScanner(out)}
}

func (p *python) is(want, line string) {
	p.t.Helper()
	_, err := fmt.Fprintln(p.in, line)
	must(p.t, err)
	if !p.answers.Scan() || p.answers.Text() != want {
		p.t.Fatalf("%s: %q instead of %q, %v", line, p.answers.Text(), want, p.answers.Err())
	}
}

// Each tool respects a file that the other one holds.
//
// shows: LE-10 LE-14 LE-15
func TestEachRespectsTheOther(t *testing.T) {
	s := newScene(t)
	other := s.python("tidy_up.py")
	ours := s.holds("tidy_up")
	other.is("no", "acquire 0.05")
	must(t, ours.Renew(t.Context()))
	other.is("no", "renew")
	other.is("no", "release")
	other.is("no", "acquire 0")
	s.release(ours)

	other.is("yes", "acquire 0")
	s.blocked("held by the other")
	if err := s.reader("reader").Acquire(t.Context(), 0); lockkeeper.CodeOf(err) != lockkeeper.CodeTimeout {
		t.Errorf("a reader: %v", err)
	}
	other.is("yes", "renew")
	s.blocked("renewed by the other")
	other.is("yes", "release")

	readers := []*lease.Lease{s.reads("first"), s.reads("second")}
	for _, r := range readers {
		other.is("no", "acquire 0.05")
		s.release(r)
	}
	other.is("yes", "acquire 0")
	other.is("yes", "release")
	s.release(s.holds("tidy_up"))
	s.isFree()
}

// A stolen file is noticed at the next renewal and stays the thief's.
//
// shows: LE-8 GP-36
func TestStolenByForeignBreaker(t *testing.T) {
	s := newScene(t)
	other := s.python("thief.py")
	ours := s.holds("tidy_up")
	other.is("yes", "steal")
	var lost *lease.LostError
	if err := ours.Renew(t.Context()); !errors.As(err, &lost) || lost.Now.Owner != "thief.py" {
		t.Errorf("got %v", err)
	}
	if done, err := ours.Release(t.Context()); done || err != nil {
		t.Errorf("release: %v, %v", done, err)
	}
	other.is("yes", "renew")
	other.is("yes", "release")
}

// Each tool breaks stale files of the other.
//
// shows: LE-5 LE-25
func TestEachBreaksStale(t *testing.T) {
	s := newScene(t)
	other := s.python("tidy_up.py")
	ours := s.holds("tidy_up")
	p := s.read()
	p.ExpiresAt = time.Now().UTC().Add(-3 * time.Minute).Truncate(time.Second)
	s.replace(p)()
	other.is("yes", "acquire 0")
	if done, err := ours.Release(t.Context()); done || err != nil {
		t.Errorf("release: %v, %v", done, err)
	}
	s.clock.pass(33 * time.Minute)
	next := s.holds("next")
	other.is("no", "renew")
	other.is("no", "release")
	s.release(next)
}

// A creator that is slow to write has two seconds; then its file is broken.
//
// shows: GP-35
func TestSlowToWrite(t *testing.T) {
	s := newScene(t)
	slow := s.python("slow.py")
	began := time.Now()
	slow.is("yes", "create")
	l := s.lease("next")
	must(t, l.Acquire(t.Context(), time.Minute))
	if took := time.Since(began); took < 1900*time.Millisecond {
		t.Errorf("it took %s", took)
	}
	s.release(l)
	kept, err := filepath.Glob(s.path + ".corrupt.*")
	if err != nil || len(kept) != 1 || !strings.Contains(strings.Join(s.notes, " "), "it is empty") {
		t.Errorf("kept %q, said %q, %v", kept, s.notes, err)
	}
}

// A foreign owner name cannot break out of its line.
func TestForeignOwnerStaysInItsLine(t *testing.T) {
	s := newScene(t)
	s.write(s.foreign("cron\nlease: all is well\x1b[2J", 0))
	err := s.lease("ours").Acquire(t.Context(), 0)
	if err == nil || strings.ContainsAny(err.Error(), "\n\x1b") || !strings.Contains(err.Error(), `cron\nlease: all is well\x1b[2J (pid 4711)`) {
		t.Errorf("it says %v", err)
	}
}

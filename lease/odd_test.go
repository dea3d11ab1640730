package lease_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/durable/durabletest"
	"lockkeeper/lease"
)

// A file that is cut anywhere, empty, or full of noise counts as held for two
// seconds, and is broken then, and its bytes are kept.
//
// shows: LE-6 LE-35 LE-36 CF-38 GP-35
func TestMalformed(t *testing.T) {
	whole, err := json.Marshal(newScene(t).foreign("python", 0))
	must(t, err)
	bad := [][]byte{[]byte("null"), []byte("[]"), []byte("{}"), []byte(`{"token":"x"}`), []byte(`{"token":"x","expires_at":null}`), []byte(`{"token":"x","expires_at":"soon"}`),
		[]byte(`{"token":7,"expires_at":"2126-01-03T12:00:00Z"}`), append(bytes.Clone(whole), '}'), bytes.Repeat(whole, 1000), make([]byte, 200<<10)}
	for n := range whole { // and empty
		bad = append(bad, whole[:n])
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	draw := rand.New(rand.NewPCG(seed, 1))
	for range 20 * torture() {
		noise := make([]byte, draw.IntN(4096))
		for i := range noise {
			noise[i] = byte(draw.Uint32())
		}
		bad = append(bad, noise)
	}
	s := newScene(t)
	for _, text := range bad {
		s.put(text)
		s.age(1900 * time.Millisecond)
		s.blocked("too new")
		s.age(2100 * time.Millisecond)
		s.notes = nil
		l := s.holds("next")
		if len(s.notes) != 1 || !strings.Contains(s.notes[0], "was no lease") {
			t.Fatalf("%q: said %q", text, s.notes)
		}
		s.release(l)
		kept, err := filepath.Glob(s.path + ".corrupt.*")
		must(t, err)
		if len(kept) != 1 {
			t.Fatalf("%q: kept %q", text, kept)
		}
		if got, err := os.ReadFile(kept[0]); err != nil || !bytes.Equal(got, text) {
			t.Fatalf("%q: kept %q, %v", text, got, err)
		}
		must(t, os.Remove(kept[0]))
	}
}

// A stamp in the future does not keep a malformed file for ever.
func TestMalformedInTheFuture(t *testing.T) {
	s := newScene(t)
	s.put(nil)
	s.age(-24 * time.Hour)
	s.blocked("seen")
	s.clock.pass(2 * time.Second)
	s.release(s.holds("next"))
}

// Whatever another tool makes of the format, its lease is respected as long as it says
// whose it is and when it ends.
//
// shows: LE-10
func TestOtherSpellings(t *testing.T) {
	for _, text := range []string{
		`{"token": "x", "expires_at": "2126-01-03T12:00:00Z"}`,
		`{"token": "x", "expires_at": "2126-01-03T12:00:00.123456Z", "pid": "12", "owner": null}`,
		`{"token": "x", "expires_at": "2126-01-03T12:00:00.123456+00:00"}`,
		`{"token": "x", "expires_at": "2126-01-03T12:00:00+00:00Z"}`,
		`{"token": "x", "expires_at": "2126-01-03T12:00:00.5"}`,
		`{"token": "x", "expires_at": "2126-01-03 12:00:00", "host": {"name": "elsewhere"}}`,
		`{"token": "x", "expires_at": "2126-01-03 12:00:00.5+00:00"}`,
		`{"token": "x", "expires_at": "2126-01-03T12:00:00+0000"}`,
		`{"token": "x", "expires_at": "2126-01-03 12:00:00.123456+00"}`,
		`{"token": "x", "expires_at": "2126-01-03T12:00Z"}`,
		`{"token": "x", "expires_at": "2126-01-03T12:00"}`,
		`{"token": "x", "expires_at": "2126-01-03"}`,
		`{"token": "x", "expires_at": "21260103T120000Z"}`,
		`{"token": "x", "expires_at": "21260103T120000"}`,
	} {
		s := newScene(t)
		s.put([]byte(text))
		s.age(time.Hour)
		s.blocked(text)
	}
}

// A lease that does not say since when, or names a year beyond what can be counted, is
// renewed for a time that ends, and how to wait for it is said in a time that is none
// of the past.
//
// shows: LE-10
func TestTimesThatCannotBeCounted(t *testing.T) {
	for _, text := range []string{
		`{"token": "x", "expires_at": "2126-01-03T12:00:00Z"}`,
		`{"token": "x", "expires_at": "9999-12-31T23:59:59Z", "last_renewed_at": "0001-01-02T00:00:00Z"}`,
	} {
		s := newScene(t)
		s.put([]byte(text))
		var held *lease.HeldError
		if err := s.lease("next").Acquire(t.Context(), 0); !errors.As(err, &held) || held.Patience() <= 0 {
			t.Errorf("%s: got %v", text, err)
		}
		opt := s.options("")
		opt.TTL = -1 // as long as before
		must(t, lease.Resume(s.path, "x", opt).Renew(t.Context()))
		if lasts := s.read().ExpiresAt.Sub(s.clock.look().Wall); lasts <= 0 || lasts > 101*365*24*time.Hour {
			t.Errorf("%s: renewed for %s", text, lasts)
		}
	}
}

// A name that the files beside a lease could not hold is refused before anything is
// written.
func TestNamesWithoutEnd(t *testing.T) {
	s := newScene(t)
	long := strings.Repeat("x", 70<<10)
	if err := s.lease(long).Acquire(t.Context(), 0); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
		t.Errorf("an owner: %v", err)
	}
	l := s.holds("tidy_up")
	before := s.read()
	s.clock.pass(time.Minute)
	if err := l.Phase(t.Context(), long); lockkeeper.CodeOf(err) != lockkeeper.CodeInput || s.read() != before {
		t.Errorf("a phase: %v, and the lease is %+v", err, s.read())
	}
	s.release(l)
}

// What is no regular file is refused at once, and left alone.
//
// shows: LE-6
func TestNoFile(t *testing.T) {
	for name, put := range map[string]func(*scene) error{
		"a directory":             func(s *scene) error { return os.Mkdir(s.path, 0o755) },
		"a symbolic link":         func(s *scene) error { return os.Symlink("nowhere", s.path) },
		"no regular file":         func(s *scene) error { return unix.Mkfifo(s.path, 0o600) },
		"a socket or a device":    listen,
		"a link to a stale lease": linked,
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			must(t, os.MkdirAll(filepath.Dir(s.path), 0o755))
			must(t, put(s))
			before, err := os.Lstat(s.path)
			must(t, err)
			err = s.lease("next").Acquire(t.Context(), time.Minute)
			what := strings.ReplaceAll(name, "a link to a stale lease", "a symbolic link")
			if lockkeeper.CodeOf(err) != lockkeeper.CodeRefused || !strings.Contains(err.Error(), "there is "+what) {
				t.Errorf("got %v", err)
			}
			if after, err := os.Lstat(s.path); err != nil || !os.SameFile(before, after) {
				t.Errorf("it was replaced: %v", err)
			}
			if guards, err := filepath.Glob(filepath.Join(filepath.Dir(s.path), ".*.guard")); err != nil || len(guards) > 0 {
				t.Errorf("left beside it: %q, %v", guards, err)
			}
			info, err := lease.Look(s.path, s.options(""))
			if err != nil || info.State != lease.Refused {
				t.Errorf("shown as %+v, %v", info, err)
			}
		})
	}
}

func listen(s *scene) error {
	address, err := os.MkdirTemp("", "lease") // short enough for a socket
	if err != nil {
		return err
	}
	s.t.Cleanup(func() { os.RemoveAll(address) })
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(address, "x"), Net: "unix"})
	if err != nil {
		return err
	}
	s.t.Cleanup(func() { l.Close() })
	return os.Rename(filepath.Join(address, "x"), s.path)
}

func linked(s *scene) error {
	s.write(s.foreign("crashed", time.Hour))
	if err := os.Rename(s.path, s.path+".real"); err != nil {
		return err
	}
	return os.Symlink(s.path+".real", s.path)
}

// A file that may not be read may be a live lease of another user, however old it is.
//
// shows: LE-6
func TestUnreadable(t *testing.T) {
	if !durabletest.Unprivileged(t) {
		return
	}
	s := newScene(t)
	s.write(s.foreign("another user", time.Hour))
	s.age(time.Hour)
	must(t, os.Chmod(s.path, 0))
	err := s.lease("next").Acquire(t.Context(), 0)
	for _, fact := range []string{s.path, "somebody unknown; it may not be read", "permission denied", "next: ask whoever it belongs to"} {
		if lockkeeper.CodeOf(err) != lockkeeper.CodeTimeout || !strings.Contains(err.Error(), fact) {
			t.Errorf("want %q; got %v", fact, err)
		}
	}
	info, err := lease.Look(s.path, s.options(""))
	if err != nil || info.State != lease.Unclear || !strings.Contains(info.Fact, "may not be read") {
		t.Errorf("shown as %+v, %v", info, err)
	}
	must(t, os.Chmod(s.path, 0o644))
	if s.read().Owner != "another user" {
		t.Error("it was broken")
	}
	s.holds("next") // now that it can be read, its time is past
}

// One of ours whose file was shut by somebody loses nothing: it holds the lease by its
// record, and nobody else gets it.
//
// shows: LE-6
func TestShutWhileItIsHeld(t *testing.T) {
	if !durabletest.Unprivileged(t) {
		return
	}
	s := newScene(t)
	l := s.holds("tidy_up")
	must(t, os.Chmod(s.path, 0))
	s.blocked("next")
	var lost *lease.LostError
	if err := l.Renew(t.Context()); err == nil || errors.As(err, &lost) || !strings.Contains(err.Error(), "next: make it readable") {
		t.Errorf("renewed unseen, or lost: %v", err)
	}
	must(t, os.Chmod(s.path, 0o644))
	must(t, l.Renew(t.Context()))
	s.release(l)
}

// Who mistypes a path loses nothing: only what is called a lock is taken for one.
func TestSomebodysFile(t *testing.T) {
	s := newScene(t)
	s.path = filepath.Join(filepath.Dir(s.path), "README.md")
	s.put([]byte("# Read me\n"))
	s.age(time.Hour)
	if err := s.lease("next").Acquire(t.Context(), time.Minute); lockkeeper.CodeOf(err) != lockkeeper.CodeRefused || !strings.Contains(err.Error(), "left alone") {
		t.Errorf("got %v", err)
	}
	must(t, os.Remove(s.path))
	s.release(s.holds("next")) // any name will do otherwise
}

// The guard is only a file; what is wrong with it is said.
func TestOddGuard(t *testing.T) {
	s := newScene(t)
	path := filepath.Join(filepath.Dir(s.path), ".tidy.lock.guard")
	l := s.holds("tidy_up")
	must(t, os.WriteFile(path, []byte("noise"), 0o644))
	must(t, l.Renew(t.Context()))
	must(t, os.Truncate(path, 100))
	s.blocked("without a record")
	s.release(l)
	must(t, os.Remove(path))
	must(t, unix.Mkfifo(path, 0o600))
	if err := s.lease("next").Acquire(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("a FIFO: %v", err)
	}
	must(t, os.Remove(path))
	must(t, os.Symlink("/etc/passwd", path))
	if err := s.lease("next").Acquire(t.Context(), 0); err == nil {
		t.Error("a link was followed")
	}
}

// A file system that cannot do what is needed is refused.
func TestWeakDisk(t *testing.T) {
	s := newScene(t)
	disk := &durabletest.FaultyDisk{}
	disk.FailNext(durabletest.Move, 1, unix.EINVAL)
	opt := s.options("next")
	opt.Disk = disk
	if err := lease.New(s.path, opt).Acquire(t.Context(), 0); lockkeeper.CodeOf(err) != lockkeeper.CodeRefused || !strings.Contains(err.Error(), "local disk") {
		t.Errorf("got %v", err)
	}
	s.isFree()
}

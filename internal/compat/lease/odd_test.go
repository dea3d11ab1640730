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
	"lockkeeper/internal/compat/lease"
)

// A truncated, empty or random file counts as held for two seconds. Then it is broken and
// its bytes are kept.
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
		s.youngBlocks()
		s.age(2100 * time.Millisecond)
		s.notes = nil
		l := s.holds("next")
		if len(s.notes) != 1 || !strings.Contains(s.notes[0], "was malformed") {
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

// youngBlocks checks that the file blocks while it is younger than two seconds. On a busy
// machine it grows too old meanwhile, and is made again.
func (s *scene) youngBlocks() {
	s.t.Helper()
	text, err := os.ReadFile(s.path)
	must(s.t, err)
	const age, limit = 1500 * time.Millisecond, 2 * time.Second
	for {
		began := time.Now()
		s.age(age)
		l := s.lease("too early")
		err := l.Acquire(s.t.Context(), 0)
		if lockkeeper.CodeOf(err) == lockkeeper.CodeTimeout {
			return
		}
		must(s.t, err)
		if age+time.Since(began) < limit {
			s.t.Fatalf("%q: a file of %s does not block", text, age)
		}
		s.release(l)
		kept, err := filepath.Glob(s.path + ".corrupt.*")
		must(s.t, err)
		for _, file := range kept {
			must(s.t, os.Remove(file))
		}
		s.put(text)
	}
}

// A modification time in the future does not keep a malformed file forever.
func TestMalformedInTheFuture(t *testing.T) {
	s := newScene(t)
	s.put(nil)
	s.age(-24 * time.Hour)
	s.blocked("seen")
	s.clock.pass(2 * time.Second)
	s.release(s.holds("next"))
}

// A foreign file is respected if it has a token and an expiry, whatever the format of its
// time.
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

// A file without a start time, or with a year that a time.Duration cannot reach, is
// renewed for a bounded time. The suggested timeout is positive.
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
		if err := s.lease("next").Acquire(t.Context(), 0); !errors.As(err, &held) || held.RetryTimeout() <= 0 {
			t.Errorf("%s: got %v", text, err)
		}
		opt := s.options("")
		opt.TTL = -1 // as long as before
		must(t, lease.Resume(s.path, "x", opt).Renew(t.Context()))
		if lasts := s.read().ExpiresAt.Sub(s.clock.read().Wall); lasts <= 0 || lasts > 101*365*24*time.Hour {
			t.Errorf("%s: renewed for %s", text, lasts)
		}
	}
}

// A name too long for the guard is refused before anything is written.
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

// A path that is not a regular file is refused immediately and left alone.
func TestNoFile(t *testing.T) {
	for name, put := range map[string]func(*scene) error{
		"a directory":             func(s *scene) error { return os.Mkdir(s.path, 0o755) },
		"a symbolic link":         func(s *scene) error { return os.Symlink("nowhere", s.path) },
		"not a regular file":      func(s *scene) error { return unix.Mkfifo(s.path, 0o600) },
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
			if lockkeeper.CodeOf(err) != lockkeeper.CodeRefused || !strings.Contains(err.Error(), "the path is "+what) {
				t.Errorf("got %v", err)
			}
			if after, err := os.Lstat(s.path); err != nil || !os.SameFile(before, after) {
				t.Errorf("it was replaced: %v", err)
			}
			if guards, err := filepath.Glob(filepath.Join(filepath.Dir(s.path), ".*.guard")); err != nil || len(guards) > 0 {
				t.Errorf("left beside it: %q, %v", guards, err)
			}
			info, err := lease.Inspect(s.path, s.options(""))
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

// An unreadable file may be a current one of another user, however old it is.
func TestUnreadable(t *testing.T) {
	if !durabletest.Unprivileged(t) {
		return
	}
	s := newScene(t)
	s.write(s.foreign("another user", time.Hour))
	s.age(time.Hour)
	must(t, os.Chmod(s.path, 0))
	err := s.lease("next").Acquire(t.Context(), 0)
	for _, fact := range []string{s.path, "unknown holder; it is not readable", "permission denied", "next: ask the owner of the file"} {
		if lockkeeper.CodeOf(err) != lockkeeper.CodeTimeout || !strings.Contains(err.Error(), fact) {
			t.Errorf("want %q; got %v", fact, err)
		}
	}
	info, err := lease.Inspect(s.path, s.options(""))
	if err != nil || info.State != lease.Unclear || !strings.Contains(info.Fact, "not readable") {
		t.Errorf("shown as %+v, %v", info, err)
	}
	must(t, os.Chmod(s.path, 0o644))
	if s.read().Owner != "another user" {
		t.Error("it was broken")
	}
	s.holds("next") // readable now, and expired
}

// A holder whose file became unreadable still holds it by the record, and no other process
// gets it.
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

// A mistyped path does no harm: only a .lock file is broken.
func TestSomebodysFile(t *testing.T) {
	s := newScene(t)
	s.path = filepath.Join(filepath.Dir(s.path), "README.md")
	s.put([]byte("# Read me\n"))
	s.age(time.Hour)
	if err := s.lease("next").Acquire(t.Context(), time.Minute); lockkeeper.CodeOf(err) != lockkeeper.CodeRefused || !strings.Contains(err.Error(), "not changed") {
		t.Errorf("got %v", err)
	}
	must(t, os.Remove(s.path))
	s.release(s.holds("next")) // a free path may have any name
}

// A damaged or replaced guard is reported.
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
	if err := s.lease("next").Acquire(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a FIFO: %v", err)
	}
	must(t, os.Remove(path))
	must(t, os.Symlink("/etc/passwd", path))
	if err := s.lease("next").Acquire(t.Context(), 0); err == nil {
		t.Error("a link was followed")
	}
}

// A file system without the required operations is refused.
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

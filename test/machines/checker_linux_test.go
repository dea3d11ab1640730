//go:build machines

package machines

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A checker is a directory that all machines share. It has a file for each key under lock.
type checker struct {
	t   *testing.T
	dir string
}

// A record is what checked work says about itself. At is on the monotonic clock, which all machines
// share.
type record struct {
	Key     string
	Machine string
	Grant   string
	What    string // began, overlap, ended
	At      time.Duration
	Late    time.Duration // with overlap: how long the other work continued
	Wall    time.Duration // what the machine's wall clock shows, since 1970
	Host    time.Duration // what the host's wall clock shows
}

func newChecker(t *testing.T) *checker {
	t.Helper()
	dir, err := os.MkdirTemp(checked, "")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	return &checker{t, dir}
}

// Modes of checked work.
const (
	obedient = "obedient" // ends at SIGTERM
	stubborn = "stubborn" // ignores SIGTERM, and leaves a child in its own session that does so too
)

// work returns the command line of work that takes a time.
func (c *checker) work(key, mode string, takes time.Duration) []string {
	return []string{filepath.Join(bin, workName), c.dir, key, mode, takes.String()}
}

// records returns everything that work has said.
func (c *checker) records() (list []record) {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(c.dir, "log"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	must(c.t, err)
	for line := range strings.Lines(string(text)) {
		var r record
		must(c.t, json.Unmarshal([]byte(line), &r))
		list = append(list, r)
	}
	return list
}

// began reports whether work with a key has begun on a machine.
func (c *checker) began(key string, m *machine) bool {
	for _, r := range c.records() {
		if r.Key == key && r.Machine == m.name && r.What == "began" {
			return true
		}
	}
	return false
}

// count returns how often work with a key has begun, or said something else.
func (c *checker) count(key, what string) (n int) {
	for _, r := range c.records() {
		if r.Key == key && r.What == what {
			n++
		}
	}
	return n
}

// verify fails the test if work has overlapped.
func (c *checker) verify() {
	c.t.Helper()
	for _, r := range c.records() {
		if r.What == "overlap" {
			c.t.Errorf("overlap: work on %s began on %s and the work of the previous holder ran for %v more", r.Key, r.Machine, r.Late.Round(time.Millisecond))
		}
	}
}

// workMain is a command that runs under a lock. The kernel's lock of its key ends when the
// last process that inherited it has ended.
func workMain() int {
	dir, key, mode, text := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	if mode == stubborn {
		signal.Ignore(unix.SIGTERM, unix.SIGHUP, unix.SIGINT)
	}
	err := work(dir, key, mode, text)
	if err != nil {
		fmt.Fprintln(os.Stderr, "checked-work:", err)
		return 1
	}
	return 0
}

func work(dir, key, mode, text string) error {
	takes, err := time.ParseDuration(text)
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	r := record{Key: key, Machine: host, Grant: os.Getenv("LOCKKEEPER_GRANT"), Wall: time.Duration(time.Now().UnixNano()), Host: hostClock(dir)}
	fd, err := unix.Open(filepath.Join(dir, key), unix.O_CREAT|unix.O_RDWR, 0o600) // inherited by children
	if err != nil {
		return err
	}
	began := monotonic()
	switch err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); {
	case errors.Is(err, unix.EWOULDBLOCK):
		if err := unix.Flock(fd, unix.LOCK_EX); err != nil {
			return err
		}
		r.What, r.At, r.Late = "overlap", began, monotonic()-began
		return say(dir, r)
	case err != nil:
		return err
	}
	r.What, r.At = "began", began
	if err := say(dir, r); err != nil {
		return err
	}
	if mode == stubborn { // sleep ignores what its parent ignores
		child := exec.Command("sleep", strconv.FormatFloat(takes.Seconds(), 'f', 3, 64))
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		child.ExtraFiles = []*os.File{os.NewFile(uintptr(fd), key)}
		if err := child.Start(); err != nil {
			return err
		}
		defer child.Wait()
	}
	time.Sleep(takes)
	r.What, r.At = "ended", monotonic()
	return say(dir, r)
}

// say appends a record in one write.
func say(dir string, r record) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// monotonic returns the time since the host started, on a clock that nothing shifts.
func monotonic() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(err) // the kernel always has this clock
	}
	return time.Duration(now.Nano())
}

// ended returns how many keys have work that came to its end.
func (c *checker) ended() int {
	keys := map[string]bool{}
	for _, r := range c.records() {
		if r.What == "ended" {
			keys[r.Key] = true
		}
	}
	return len(keys)
}

// hostClock returns the time that the kernel gives a file. Nothing shifts it.
func hostClock(dir string) time.Duration {
	f, err := os.CreateTemp(dir, "clock-")
	if err != nil {
		return 0
	}
	defer os.Remove(f.Name())
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0
	}
	return time.Duration(info.ModTime().UnixNano())
}

// read returns the content of a file that commands have written beside the records.
func (c *checker) read(name string) string {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(c.dir, name))
	must(c.t, err)
	return string(text)
}

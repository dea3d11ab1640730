package process

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// cgroupPrefix begins the names of the control groups that Run makes.
const cgroupPrefix = "lockkeeper-"

// A cgroup is a control group (version 2) that holds everything that one command
// started. A process can leave it only if it may write to another control group.
type cgroup struct {
	dir  string // directory where the hierarchy is mounted
	path string // path of the group from the root of the hierarchy
}

// newCgroup makes a control group below the one of this process. It returns nil if
// this process may not make one.
func newCgroup() *cgroup {
	own, err := ownCgroup()
	if err != nil || !own.usable() {
		return nil
	}
	own.tidy()
	c := own.child(cgroupPrefix + rand.Text())
	if os.Mkdir(c.dir, 0o755) != nil {
		return nil
	}
	kind, err := os.ReadFile(filepath.Join(c.dir, "cgroup.type"))
	if err != nil || string(bytes.TrimSpace(kind)) != "domain" || !c.usable() || !c.has("cgroup.kill") {
		os.Remove(c.dir)
		return nil
	}
	return c
}

// cgroupRetention is how long an empty control group stays, because its command may be about
// to start.
const cgroupRetention = time.Hour

// tidy removes groups of commands whose supervisor and keeper were killed, if no later holder
// removed them. The kernel refuses to remove a group in use.
func (c *cgroup) tidy() {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), cgroupPrefix) {
			continue
		}
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > cgroupRetention {
			c.child(e.Name()).remove()
		}
	}
}

// HasControlGroups reports whether each command can run in a control group of its own. If
// not, its keeper and an inherited limit identify the processes that it starts.
func HasControlGroups() bool {
	c := newCgroup()
	return c != nil && c.remove() == nil
}

// ownCgroup finds the control group of this process.
func ownCgroup() (*cgroup, error) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		if path, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			return cgroupAt(path)
		}
	}
	return nil, fs.ErrNotExist
}

// cgroupAt finds where a control group is mounted.
func cgroupAt(path string) (*cgroup, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		mount, kind, _ := strings.Cut(line, " - ")
		f := strings.Fields(mount)
		if !strings.HasPrefix(kind, "cgroup2 ") || len(f) < 5 {
			continue
		}
		below, err := filepath.Rel(f[3], path)
		if err != nil || below != "." && !filepath.IsLocal(below) {
			continue // this mount shows another part of the hierarchy
		}
		return &cgroup{dir: filepath.Join(f[4], below), path: path}, nil
	}
	return nil, fs.ErrNotExist
}

func (c *cgroup) child(name string) *cgroup {
	return &cgroup{dir: filepath.Join(c.dir, name), path: filepath.Join(c.path, name)}
}

// usable reports whether this process may move processes into the group.
func (c *cgroup) usable() bool {
	return unix.Faccessat(unix.AT_FDCWD, filepath.Join(c.dir, "cgroup.procs"), unix.W_OK, unix.AT_EACCESS) == nil
}

func (c *cgroup) has(file string) bool {
	_, err := os.Lstat(filepath.Join(c.dir, file))
	return err == nil
}

// contains reports whether this process is in the group.
func (c *cgroup) contains() bool {
	own, err := ownCgroup()
	return err == nil && (own.path == c.path || strings.HasPrefix(own.path, c.path+"/"))
}

// kill sends SIGKILL to all processes in the group and below it. The kernel kills
// those that are being forked meanwhile as well.
func (c *cgroup) kill() error {
	err := os.WriteFile(filepath.Join(c.dir, "cgroup.kill"), []byte("1"), 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
		return nil // another process removed the group, so it was empty
	}
	return err
}

// empty kills all processes in the group and returns when none is left.
func (c *cgroup) empty(ctx context.Context) error {
	events, err := os.Open(filepath.Join(c.dir, "cgroup.events"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer events.Close()
	if err := c.kill(); err != nil {
		return err
	}
	for {
		text := make([]byte, 256)
		n, err := events.ReadAt(text, 0)
		if errors.Is(err, unix.ENODEV) {
			return nil
		}
		if n == 0 {
			return err
		}
		if bytes.Contains(text[:n], []byte("populated 0")) {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		// The kernel reports a change of the file as an exceptional condition. The
		// limit only bounds how late the end of ctx is seen.
		unix.Poll([]unix.PollFd{{Fd: int32(events.Fd()), Events: unix.POLLPRI}}, int(100*time.Millisecond/time.Millisecond))
	}
}

// close empties the group and removes it, so that a keeper that was asked to start a command
// in it cannot do so any more.
func (c *cgroup) close(ctx context.Context) error {
	for {
		if err := c.empty(ctx); err != nil {
			return err
		}
		// A command that was started meanwhile keeps the group from being removed.
		if err := c.remove(); !errors.Is(err, unix.EBUSY) {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// remove removes the group, which must be empty, and the groups that commands made
// below it. A nil group needs no removal.
func (c *cgroup) remove() error {
	if c == nil {
		return nil
	}
	below, err := os.ReadDir(c.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range below {
		if entry.IsDir() {
			if err := c.child(entry.Name()).remove(); err != nil {
				return err
			}
		}
	}
	if err := os.Remove(c.dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove control group %s: %w", c.path, err)
	}
	return nil
}

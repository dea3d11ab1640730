package process

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper"
)

const nobody = 65534

// A scene is a directory in which one user runs commands under grants, with or
// without a control group for them.
type scene struct {
	uid     uint32
	program string // the test program, where the user may execute it
	daemon  string // testdata/daemon.pl
	work    string // the file that only one daemon at a time may lock
	cgroup  *os.File
	without bool // without a hierarchy of control groups
}

// eachScene runs a test as root and as an ordinary user, with and without a
// control group to run commands in. As an ordinary user it runs once.
func eachScene(t *testing.T, test func(t *testing.T, s *scene)) {
	run := func(name string, uid int, cgroups bool) {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, uid)
			if cgroups {
				s.delegate(t)
			}
			s.without = !cgroups
			test(t, s)
		})
	}
	if os.Geteuid() != 0 {
		run("user", os.Geteuid(), false)
		return
	}
	run("root without cgroup", 0, false)
	run("user without cgroup", nobody, false)
	if c := newCgroup(); c != nil {
		os.Remove(c.dir)
		run("root with cgroup", 0, true)
		run("user with cgroup", nobody, true)
	}
}

func newScene(t *testing.T, uid int) *scene {
	t.Helper()
	dir, err := os.MkdirTemp("", "process-scene")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &scene{uid: uint32(uid), program: filepath.Join(dir, "test"), daemon: filepath.Join(dir, "daemon.pl"), work: filepath.Join(dir, "work")}
	copyFile(t, "/proc/self/exe", s.program, 0o755)
	copyFile(t, "testdata/daemon.pl", s.daemon, 0o644)
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(s.work, nil, 0o666), os.Chmod(s.work, 0o666)); err != nil {
		t.Fatal(err)
	}
	return s
}

func copyFile(t *testing.T, from, to string, mode os.FileMode) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, mode)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(out, in)
	if err := errors.Join(err, out.Close()); err != nil {
		t.Fatal(err)
	}
}

// delegate gives the user a control group, as systemd does.
func (s *scene) delegate(t *testing.T) {
	t.Helper()
	c := newCgroup()
	if c == nil {
		t.Fatal("no control group")
	}
	for _, path := range []string{c.dir, c.dir + "/cgroup.procs", c.dir + "/cgroup.subtree_control", c.dir + "/cgroup.threads"} {
		if err := os.Chown(path, int(s.uid), int(s.uid)); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if s.cgroup, err = os.Open(c.dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.cgroup.Close()
		if err := errors.Join(c.empty(context.Background()), c.remove()); err != nil {
			t.Error(err)
		}
	})
}

// start starts the test program as a helper of the scene's user.
func (s *scene) start(t *testing.T, mode string, args ...string) *child {
	t.Helper()
	argv := append([]string{s.program, helperArg, mode}, args...)
	if s.without && os.Geteuid() == 0 {
		// Root loses sight of the hierarchy, and an ordinary user never had it.
		argv = append([]string{"unshare", "--mount", "sh", "-c", `umount -l /sys/fs/cgroup/unified 2>/dev/null || umount -lR /sys/fs/cgroup; exec "$@"`, "sh"}, argv...)
		if s.uid != 0 {
			argv = append([]string{"setpriv", "--reuid", fmt.Sprint(s.uid), "--regid", fmt.Sprint(s.uid), "--clear-groups"}, argv[6:]...)
		}
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stderr, cmd.Dir = os.Stderr, filepath.Dir(s.program)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if s.cgroup != nil {
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(s.cgroup.Fd())
		if s.uid != 0 {
			cmd.SysProcAttr.Credential = &syscall.Credential{Uid: s.uid, Gid: s.uid}
		}
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return &child{t, cmd, bufio.NewScanner(out)}
}

// free reports whether no process has the file locked.
func (s *scene) free(t *testing.T) bool {
	t.Helper()
	f, err := os.Open(s.work)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}

func (s *scene) wantFree(t *testing.T) {
	t.Helper()
	if s.free(t) {
		return
	}
	for _, pid := range s.holders(t) {
		at, _ := readStat(pid)
		t.Errorf("the work of the last holder still runs: %+v", at)
		unix.Kill(pid, unix.SIGKILL)
	}
}

// holders lists the processes that have the file open.
func (s *scene) holders(t *testing.T) (pids []int) {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && to == s.work {
			pid, _ := strconv.Atoi(strings.Split(link, "/")[2])
			pids = append(pids, pid)
		}
	}
	return pids
}

// holder is a helper that runs two commands: one that sleeps, and the command to test. It prints
// the process record, the output of the command, and how the command ended.
func holder(argv []string) int {
	beside, stop := context.WithCancel(context.Background())
	done, up := make(chan error, 1), make(chan bool)
	go func() {
		_, err := Run(beside, Command{Argv: []string{"sleep", "1000"}, Grant: ownGrant("g-beside"),
			Started: func(lockkeeper.Process) error { close(up); return nil }})
		done <- err
	}()
	<-up
	code, err := Run(context.Background(), Command{Argv: argv, Grant: ownGrant("g-daemon"), Stdout: os.Stdout, Stderr: os.Stderr,
		Started: func(p lockkeeper.Process) error {
			text, err := json.Marshal(p)
			say("%s", text)
			return err
		}})
	say("ended %d", code)
	if err != nil {
		say("%v", err)
	}
	stop()
	if err := <-done; !errors.Is(err, context.Canceled) {
		say("beside: %v", err)
	}
	return 0
}

// record reads the process record that the holder would store.
func (c *child) record() (p lockkeeper.Process) {
	c.t.Helper()
	if line := nextLine(c.t, c.lines); json.Unmarshal([]byte(line), &p) != nil {
		c.t.Fatalf("got line %q, want a record", line)
	}
	return p
}

// kinds lists the kinds of daemon that testdata/daemon.pl implements.
var kinds = []string{"plain", "stubborn", "tracer", "refork", "swarm", "lowers", "zero"}

// lowers reports whether a kind of daemon lowers the limit that carries its mark.
func lowers(kind string) bool { return kind == "lowers" || kind == "zero" }

// frozen stops the processes and returns when they have stopped, so that neither acts when the
// other one is killed.
func frozen(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		unix.Kill(pid, unix.SIGSTOP)
	}
	for _, pid := range pids {
		for at, err := readStat(pid); at.state != 'T'; at, err = readStat(pid) {
			if err != nil || t.Context().Err() != nil {
				t.Fatalf("process %d did not stop: %v", pid, err)
			}
		}
	}
}

// A daemon that changed its session, parent and environment does not outlive the command that
// started it. Other commands may run at the same time.
//
// shows: SW-71
func TestDaemonEndsWithItsCommand(t *testing.T) {
	eachScene(t, func(t *testing.T, s *scene) {
		for _, kind := range kinds {
			c := s.start(t, "holder", "perl", s.daemon, kind, s.work)
			if p := c.record(); (p.Cgroup != "") != (s.cgroup != nil) {
				t.Fatalf("recorded %+v", p)
			}
			c.expect("ready")
			if code := c.next("ended"); code != 5 {
				t.Errorf("%s: code %d", kind, code)
			}
			s.wantFree(t)
			if err := c.cmd.Wait(); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
		}
	})
}

// Whichever process of the chain is killed, nothing of the work is left after the next holder has
// taken over.
//
// shows: SW-71
func TestKilledChainLeavesNothing(t *testing.T) {
	eachScene(t, func(t *testing.T, s *scene) {
		for _, victims := range []string{"command", "keeper", "supervisor", "stopped keeper supervisor"} {
			s.killChain(t, "plain", victims)
		}
		for _, kind := range kinds {
			s.killChain(t, kind, "keeper")
			s.killChain(t, kind, "supervisor keeper")
			s.killChain(t, kind, "keeper supervisor")
			s.killChain(t, kind, "frozen supervisor keeper")
		}
	})
}

func (s *scene) killChain(t *testing.T, kind, victims string) {
	t.Helper()
	c := s.start(t, "holder", "perl", s.daemon, kind, s.work, "stay")
	p := c.record()
	c.expect("ready")
	command := childOf(t, p.Group)
	for victim := range strings.FieldsSeq(victims) {
		switch victim {
		case "command":
			unix.Kill(command, unix.SIGKILL)
		case "keeper":
			unix.Kill(p.Group, unix.SIGKILL)
		case "frozen":
			frozen(t, p.PID, p.Group)
		case "stopped":
			unix.Kill(p.Group, unix.SIGSTOP)
			victims = strings.Replace(victims, "keeper ", "", 1)
		case "supervisor":
			unix.Kill(p.PID, unix.SIGKILL)
		}
	}
	h := newHost(t)
	if !strings.Contains(victims, "supervisor") {
		if code := c.next("ended"); code != 137 {
			t.Errorf("%s, killed %s: code %d", kind, victims, code)
		}
		s.wantFree(t)
		return
	}
	wantGone(t, h, p)
	if strings.HasPrefix(victims, "frozen") && p.Cgroup == "" && s.free(t) {
		t.Errorf("%s, killed %s: no daemon is left to be found", kind, victims)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	err := h.EndLeftovers(ctx, p, ownGrant("g-daemon"))
	for _, daemon := range s.holders(t) {
		if !lowers(kind) || p.Cgroup != "" {
			break
		}
		// Nothing proves which grant it belongs to, so the grant is not released.
		var left *LeftoversError
		if !errors.As(err, &left) || !slices.ContainsFunc(left.Left, func(l Leftover) bool { return l.PID == daemon }) {
			t.Errorf("%s, killed %s: %v, want an error that names process %d", kind, victims, err, daemon)
		}
		is := identify(t, daemon)
		unix.Kill(daemon, unix.SIGKILL)
		wantGone(t, h, is)
		err = h.EndLeftovers(ctx, p, ownGrant("g-daemon"))
	}
	if err != nil {
		t.Errorf("%s, killed %s: %v", kind, victims, err)
	}
	s.wantFree(t)
	if p.Cgroup != "" {
		if g, err := cgroupAt(p.Cgroup); err != nil || g.has("cgroup.procs") {
			t.Errorf("%s, killed %s: the control group %s is left, %v", kind, victims, p.Cgroup, err)
		}
	}
	if s.free(t) { // work that starts now must find the file unlocked
		next := s.start(t, "holder", "perl", s.daemon, "plain", s.work)
		next.record()
		next.expect("ready")
		next.next("ended")
	}
}

// childOf returns the command that a keeper started. The adopted daemon is ignored, because it has
// no environment.
func childOf(t *testing.T, parent int) int {
	t.Helper()
	all, err := readTable(nil)
	if err != nil {
		t.Fatal(err)
	}
	for pid, s := range all {
		if s.parent == parent && s.group == pid && markOf(pid, ownGrant("g-daemon")) == marked {
			return pid
		}
	}
	t.Fatalf("process %d has no command", parent)
	return 0
}

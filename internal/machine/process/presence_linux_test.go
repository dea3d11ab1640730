package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/store/sqlstore"
)

const presenceSpace = "presence"

// lease is the lease of grants in these tests. A keeper must be able to renew it in time on a busy
// machine.
const lease = 3 * time.Second

var wanted = []lockkeeper.Lock{{Target: lockkeeper.Target{Path: "a.txt", Kind: lockkeeper.File}, Mode: lockkeeper.Write}}

// openLocks opens the locks in a directory with a host that judges processes.
func openLocks(ctx context.Context, dir string) (*lock.Manager, *Host, func() error, error) {
	store, err := sqlstore.OpenSQLite(ctx, filepath.Join(dir, "locks.db"), presenceSpace, sqlstore.Options{})
	if err != nil {
		return nil, nil, nil, err
	}
	h, err := NewHost(dir)
	if err != nil {
		return nil, nil, nil, errors.Join(err, store.Close())
	}
	m := lock.New(store, lock.Options{Processes: h, Self: &h.self})
	return m, h, func() error { return errors.Join(m.Close(), store.Close()) }, nil
}

// claimant is a helper that runs a command under a lock, as lock exec does:
// claimant DIR ARGV...
func claimant(dir string, argv []string) error {
	ctx := context.Background()
	m, h, done, err := openLocks(ctx, dir)
	if err != nil {
		return err
	}
	g, err := m.TryAcquire(ctx, lockkeeper.Request{Holder: "claimant", Locks: wanted, TTL: lease, Process: &h.self})
	if err != nil {
		return errors.Join(err, done())
	}
	g.Keep()
	code, err := h.Run(g.Context(), Command{Argv: argv, Grant: g.ID, Stdout: os.Stdout, Stderr: os.Stderr, KillAfter: 100 * time.Millisecond,
		Started: func(p lockkeeper.Process) error { _, err := m.SetProcess(ctx, g.ID, g.Token, p); return err }})
	say("ended %d", code)
	if lost := context.Cause(g.Context()); lost != nil {
		return done()
	}
	return errors.Join(err, g.Release(ctx), done())
}

// noCgroups hides the control groups.
const noCgroups = "umount -l /sys/fs/cgroup/unified 2>/dev/null || umount -lR /sys/fs/cgroup; "

// A container is a scene in which a claimant runs in its own PID namespace.
type container struct {
	*scene
	*child
	dir   string
	locks *lock.Manager
	host  *Host
}

// enterContainer starts a claimant in its own PID namespace, after a script has prepared the
// namespace.
func enterContainer(t *testing.T, script string) *container {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root may make a PID namespace like that of a container")
	}
	dir := t.TempDir()
	if err := sqlstore.CreateSQLite(t.Context(), filepath.Join(dir, "locks.db"), presenceSpace); err != nil {
		t.Fatal(err)
	}
	c := &container{scene: newScene(t, 0), dir: dir}
	argv := append([]string{"unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", script, "sh"},
		helperArgv("claimant", dir, "perl", c.daemon, "plain", c.work, "stay")...)
	c.child = launch(t, nil, argv...)
	c.expect("ready")
	var done func() error
	var err error
	if c.locks, c.host, done, err = openLocks(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := done(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// supervisor returns the pid of the claimant in this namespace.
func (c *container) supervisor(t *testing.T) int {
	t.Helper()
	all, err := readTable(nil)
	if err != nil {
		t.Fatal(err)
	}
	for pid := range all {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if args := strings.Split(string(line), "\x00"); err == nil && len(args) > 3 && args[1] == helperArg && args[2] == "claimant" && args[3] == c.dir {
			return pid
		}
	}
	t.Fatal("the claimant is gone")
	return 0
}

// process returns the claimant's process from the store.
func (c *container) process(t *testing.T) lockkeeper.Process {
	t.Helper()
	entries, err := c.locks.Requests(t.Context())
	if err != nil || len(entries) != 1 || entries[0].Process == nil {
		t.Fatalf("%+v, %v", entries, err)
	}
	return *entries[0].Process
}

// pastLease returns when the lease of the claimant has expired.
func (c *container) pastLease(t *testing.T) {
	t.Helper()
	for {
		entries, err := c.locks.Requests(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(entries) == 0 || entries[0].Stale {
			return
		}
		time.Sleep(lease / 20)
	}
}

// take tries to acquire the claimant's locks. It fails the test if it gets them while the
// claimant's work runs.
func (c *container) take(t *testing.T) error {
	t.Helper()
	g, err := c.locks.TryAcquire(t.Context(), lockkeeper.Request{Holder: "next", Locks: wanted, TTL: time.Minute})
	if err != nil {
		return err
	}
	c.wantFree(t)
	return g.Release(t.Context())
}

// A holder in another PID namespace that is paused for longer than its lease keeps its locks while
// its command runs.
func TestPausedInAnotherNamespace(t *testing.T) {
	c := enterContainer(t, noCgroups+`exec "$@"`)
	paused := c.supervisor(t)
	p := c.process(t)
	if p.Presence == "" || p.Cgroup != "" || c.host.sees(p) {
		t.Fatalf("recorded %+v", p)
	}
	unix.Kill(paused, unix.SIGSTOP)
	c.pastLease(t)
	wantLife(t, c.host, p, lockkeeper.ProcessAlive)
	if err := c.take(t); !lock.IsBlocked(err) {
		t.Errorf("taken from a paused holder: %v", err)
	}
	if c.free(t) {
		t.Error("the work of a holder that keeps its locks was ended")
	}
	for _, flags := range [][]string{{"--mount"}, {"--mount", "--pid", "--fork", "--mount-proc"}} {
		if said := judgeIn(t, flags, true, c.dir, p); said != "alive" {
			t.Errorf("with another boot id and %v it is %s", flags, said)
		}
	}
	unix.Kill(paused, unix.SIGCONT)
	c.next("ended") // it notices that its lease has expired
	c.cmd.Wait()
	if err := c.take(t); err != nil {
		t.Errorf("still not free: %v", err)
	}
}

// If the control group of an expired holder is visible, its work is ended first and its locks are
// released after that.
func TestLateInAnotherNamespaceWithAVisibleCgroup(t *testing.T) {
	if newCgroupForTest(t) == nil {
		t.Skip("no control group can be made here")
	}
	c := enterContainer(t, `exec "$@"`)
	unix.Kill(c.supervisor(t), unix.SIGSTOP)
	c.pastLease(t)
	if err := c.take(t); err != nil {
		t.Error(err)
	}
}

func newCgroupForTest(t *testing.T) *cgroup {
	t.Helper()
	g := newCgroup()
	if g != nil {
		if err := g.remove(); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

// If the supervisor in another PID namespace is killed, its keeper ends the work and records that.
// The next holder need not wait for the lease.
func TestKilledInAnotherNamespace(t *testing.T) {
	// The kernel kills a whole namespace with its first process. Here the first process is a
	// shell, which survives.
	c := enterContainer(t, noCgroups+`"$@"; sleep 1000`)
	p := c.process(t)
	unix.Kill(c.supervisor(t), unix.SIGKILL)
	for c.host.Liveness(p) == lockkeeper.ProcessAlive { // while the keeper ends the work
		time.Sleep(time.Millisecond)
	}
	wantLife(t, c.host, p, lockkeeper.ProcessDead)
	if err := c.take(t); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(filepath.Join(c.dir, presenceDir)); err != nil || len(left) != 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// If the whole PID namespace of a holder ends, as when a container restarts, the next holder need not wait for the lease.
func TestNamespaceGone(t *testing.T) {
	c := enterContainer(t, noCgroups+`exec "$@"`) // the claimant is the first process
	p := c.process(t)
	unix.Kill(c.supervisor(t), unix.SIGKILL)
	for c.host.Liveness(p) != lockkeeper.ProcessDead { // until the kernel has removed the last process
		time.Sleep(time.Millisecond)
	}
	if err := c.take(t); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(filepath.Join(c.dir, presenceDir)); err != nil || len(left) != 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// A namespace that still exists may have work that outlived its supervisor and its keeper, so the lease decides.
func TestKilledKeeperInAnotherNamespace(t *testing.T) {
	c := enterContainer(t, noCgroups+`"$@"; sleep 1000`)
	p := c.process(t)
	supervisor := c.supervisor(t)
	all, err := readTable(nil)
	if err != nil {
		t.Fatal(err)
	}
	pids := []int{supervisor}
	for pid, s := range all {
		if s.parent == supervisor {
			pids = append(pids, pid)
		}
	}
	if len(pids) != 2 {
		t.Fatalf("the claimant has %d children, want its keeper", len(pids)-1)
	}
	for _, signal := range []unix.Signal{unix.SIGSTOP, unix.SIGKILL} {
		for _, pid := range pids {
			unix.Kill(pid, signal)
		}
	}
	for c.host.Liveness(p) == lockkeeper.ProcessAlive {
		time.Sleep(time.Millisecond)
	}
	wantLife(t, c.host, p, lockkeeper.ProcessUnknown)
	if err := c.take(t); !lock.IsBlocked(err) {
		t.Errorf("taken within the lease: %v", err)
	}
	if c.free(t) {
		t.Error("the work was ended")
	}
}

// The presence file is removed with its command, and the command does not have it open.
func TestPresenceIsRemoved(t *testing.T) {
	dir := t.TempDir()
	h, err := NewHost(dir)
	if err != nil {
		t.Fatal(err)
	}
	var p lockkeeper.Process
	code, err := h.Run(t.Context(), Command{Argv: []string{"sh", "-c", "! ls -l /proc/self/fd | grep " + presenceDir}, Grant: ownGrant("g-present"),
		Started: func(self lockkeeper.Process) error { p = self; return nil }})
	if code != 0 || err != nil {
		t.Fatalf("code %d, %v", code, err)
	}
	left, err := os.ReadDir(filepath.Join(dir, presenceDir))
	if err != nil || len(left) != 0 || p.Presence == "" {
		t.Errorf("%v left of %+v, %v", left, p, err)
	}
	elsewhere := p
	elsewhere.PIDNS = "pid:[1]"
	wantLife(t, h, elsewhere, lockkeeper.ProcessUnknown)
	elsewhere.Presence = strings.Repeat("../", 3) + "etc/passwd"
	wantLife(t, h, elsewhere, lockkeeper.ProcessUnknown)
}

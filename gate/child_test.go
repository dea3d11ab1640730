package gate_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/durable/durabletest"
	"lockkeeper/gate"
	"lockkeeper/lock"
	"lockkeeper/store"
	"lockkeeper/store/sqlstore"
	"lockkeeper/tree"
)

// A place is a tree and its lock store, shared by several processes.
type place struct {
	Root, Kind, Where, Space string
	Clock                    string // a file that contains how far the clock was advanced
}

// now returns the time of the place: real time plus the duration in its clock file.
func (p place) now() store.Moment {
	text, err := os.ReadFile(p.Clock)
	if err != nil {
		panic(err)
	}
	past, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		panic(err)
	}
	return store.Moment{Lease: lockkeeper.Instant(time.Hour) + lockkeeper.Instant(past), Wall: time.Now().Add(time.Duration(past)), Skew: -time.Duration(past)}
}

// pass advances the clock of every process that uses the place.
func (p place) pass(d time.Duration) error {
	next := p.Clock + ".next"
	past := int64(p.now().Lease.Until(lockkeeper.Instant(time.Hour)) + d)
	if err := os.WriteFile(next, []byte(strconv.FormatInt(past, 10)), 0o600); err != nil {
		return err
	}
	return os.Rename(next, p.Clock)
}

func (p place) store(ctx context.Context) (store.Store, error) {
	opt := sqlstore.Options{Clock: p.now}
	if p.Kind == "PostgreSQL" {
		return sqlstore.OpenPostgres(ctx, p.Where, p.Space, opt)
	}
	return sqlstore.OpenSQLite(ctx, p.Where, p.Space, opt)
}

// An errand is a task for a child process, with the point at which the child stops or dies.
type errand struct {
	Do           string // commit, replace, recover or resume
	Scene        string // the scene whose changes a commit or replacement makes
	Grant, Token string
	Step         int    // signal before this disk change, counted from 0; -1: never
	Around       string // "before" or "after" the first transaction of a commit; empty: neither
	Signal       syscall.Signal
	Fails        durabletest.Op // the first operation of this kind fails; empty: none
}

// An answer is the result of an errand.
type answer struct {
	Landing uint64 // 0: none
	Code    lockkeeper.Code
	Error   string
	Steps   int // number of disk changes

	Stopping bool // not a result: the child is about to stop itself
}

// A trap signals a child process at the point that an errand names.
type trap struct {
	mu    sync.Mutex
	e     errand
	steps int
	say   *json.Encoder
}

func (t *trap) set(e errand) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.e, t.steps = e, 0
}

// changing reports whether an operation changes the disk. Between two such operations, it does
// not matter where a process dies.
func changing(op durabletest.Op) bool {
	switch op {
	case durabletest.Create, durabletest.Mkdir, durabletest.Write, durabletest.Chmod, durabletest.Sync, durabletest.Move, durabletest.Exchange, durabletest.RemoveAt, durabletest.RemoveDir:
		return true
	}
	return false
}

func (t *trap) at(_ int, op durabletest.Op) {
	if !changing(op) {
		return
	}
	t.mu.Lock()
	hit := t.e.Signal != 0 && t.e.Around == "" && t.steps == t.e.Step
	t.steps++
	t.mu.Unlock()
	if hit {
		t.spring()
	}
}

// spring signals the calling thread, which stops or dies here.
func (t *trap) spring() {
	if t.e.Signal == syscall.SIGSTOP {
		if err := t.say.Encode(answer{Stopping: true}); err != nil {
			panic(err)
		}
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Tgkill(os.Getpid(), unix.Gettid(), t.e.Signal); err != nil {
		panic(err)
	}
}

// A brink is a store that springs its trap before or after its next transaction.
type brink struct {
	store.Store
	trap *trap
}

func (b *brink) Update(ctx context.Context, fn func(store.Tx) error) error {
	b.trap.mu.Lock()
	around := b.trap.e.Around
	b.trap.e.Around = ""
	b.trap.mu.Unlock()
	if around == "before" {
		b.trap.spring()
	}
	err := b.Store.Update(ctx, fn)
	if around == "after" {
		b.trap.spring()
	}
	return err
}

// child runs errands at a place until its input ends.
func child(where string) int {
	err := serve(where)
	if err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		return 1
	}
	return 0
}

func serve(where string) (err error) {
	var p place
	if err := json.Unmarshal([]byte(where), &p); err != nil {
		return err
	}
	ctx := context.Background()
	st, err := p.store(ctx)
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	t := &trap{say: out}
	st = &brink{st, t}
	root, err := tree.Open(p.Root)
	if err != nil {
		return err
	}
	disk := &durabletest.FaultyDisk{}
	disk.At = t.at
	var g *gate.Gate
	locks := lock.New(st, lock.Options{RecoverLandings: func(ctx context.Context, id string) error { return g.RecoverLandings(ctx, id) }})
	if g, err = gate.Open(root, st, locks, gate.Options{Disk: disk}); err != nil {
		return err
	}
	if err := out.Encode(answer{}); err != nil { // tells the test that the child is ready
		return err
	}
	for in := json.NewDecoder(os.Stdin); ; {
		var e errand
		if err := in.Decode(&e); errors.Is(err, io.EOF) {
			t.set(errand{})
			return errors.Join(g.Close(ctx), locks.Close(), st.Close(), root.Close())
		} else if err != nil {
			return err
		}
		if e.Fails != "" {
			disk.FailNext(e.Fails, 1, syscall.EIO)
		}
		t.set(e)
		a := run(ctx, g, e)
		t.mu.Lock()
		a.Steps = t.steps
		t.mu.Unlock()
		if err := out.Encode(a); err != nil {
			return err
		}
	}
}

func run(ctx context.Context, g *gate.Gate, e errand) (a answer) {
	var err error
	var l *lockkeeper.Landing
	switch e.Do {
	case "commit":
		l, err = g.Commit(ctx, &lockkeeper.Grant{ID: e.Grant, Token: e.Token}, scenes()[e.Scene].changes)
	case "replace":
		l, err = g.ReplaceDir(ctx, &lockkeeper.Grant{ID: e.Grant, Token: e.Token}, replaced, "current", filled(newVersion))
	case "recover":
		_, err = g.Recover(ctx)
	case "resume":
		err = g.RecoverLandings(ctx, e.Grant)
	}
	if l != nil {
		a.Landing = l.Seq
	}
	if err != nil {
		a.Code, a.Error = lockkeeper.CodeOf(err), err.Error()
	}
	return a
}

// A peer is a child process as seen by its test.
type peer struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	out *json.Decoder
	end sync.Once
}

// start starts a child process and kills it when the test ends.
func start(t testing.TB, p place) *peer {
	t.Helper()
	where, err := json.Marshal(p)
	must(t, err)
	c := &peer{t: t, cmd: exec.Command(os.Args[0], childArg, string(where))}
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	must(t, err)
	c.in, err = c.cmd.StdinPipe()
	must(t, err, c.cmd.Start())
	c.out = json.NewDecoder(bufio.NewReader(out))
	t.Cleanup(c.kill)
	if a, ok := c.answer(); !ok || a.Error != "" {
		t.Fatalf("a child did not start: %v", a)
	}
	return c
}

func (c *peer) ask(e errand) {
	c.t.Helper()
	must(c.t, json.NewEncoder(c.in).Encode(e))
}

// patience is the time limit of every wait for a child.
const patience = 5 * time.Minute

// answer waits for the result of an errand. It returns ok = false if the child died.
func (c *peer) answer() (a answer, ok bool) {
	c.t.Helper()
	late := time.AfterFunc(patience, func() { c.cmd.Process.Kill() })
	err := c.out.Decode(&a)
	if !late.Stop() {
		c.t.Fatalf("a child did not answer within %s", patience)
	}
	if errors.Is(err, io.EOF) {
		c.kill()
		return a, false
	}
	must(c.t, err)
	return a, true
}

// stops waits until the child stops itself or answers, and reports which.
func (c *peer) stops() (a answer, stopped bool) {
	c.t.Helper()
	a, ok := c.answer()
	if !ok {
		c.t.Fatal("a child that was to stop died")
	}
	if !a.Stopping {
		return a, false
	}
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, c.cmd.Process.Pid, &info, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			must(c.t, err)
			return a, true
		}
	}
}

// goOn resumes a stopped child and waits for the result of its errand.
func (c *peer) goOn() answer {
	c.t.Helper()
	must(c.t, c.cmd.Process.Signal(syscall.SIGCONT))
	a, ok := c.answer()
	if !ok {
		c.t.Fatal("a child died when it should continue")
	}
	return a
}

func (c *peer) kill() {
	c.end.Do(func() {
		c.cmd.Process.Kill()
		c.cmd.Wait()
	})
}

// newPlace creates a place of a kind with a tree, and opens it.
func newPlace(t *testing.T, kind string, files map[string]string) (place, *world) {
	t.Helper()
	dir := t.TempDir()
	p := place{Root: filepath.Join(dir, "root"), Kind: kind, Clock: filepath.Join(dir, "clock"), Space: space + rand.Text()}
	must(t, os.MkdirAll(filepath.Join(p.Root, ".lockkeeper"), 0o700), os.WriteFile(p.Clock, []byte("0"), 0o600))
	var err error
	switch kind {
	case "PostgreSQL":
		p.Where, err = database.URL()
		must(t, err, sqlstore.CreateSpace(t.Context(), p.Where, p.Space))
	default:
		p.Where = filepath.Join(dir, "state.db")
		must(t, sqlstore.CreateSQLite(t.Context(), p.Where, p.Space))
	}
	w := p.visit(t)
	w.plant(files)
	return p, w
}

// visit opens the place again in this process.
func (p place) visit(t *testing.T) *world {
	t.Helper()
	st, err := p.store(t.Context())
	must(t, err)
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	w := &world{t: t, dir: p.Root, store: st}
	w.open(gate.Options{})
	return w
}

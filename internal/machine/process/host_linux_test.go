package process

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper"
)

// shows: GP-32
func TestIdentityIsStable(t *testing.T) {
	a, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	b, err := Self()
	if err != nil || a != b {
		t.Fatalf("Self is %+v, then %+v, %v", a, b, err)
	}
	if a.Host == "" || a.Boot == "" || !strings.HasPrefix(a.PIDNS, "pid:[") || a.PID == 0 || a.Start == 0 {
		t.Errorf("incomplete identity %+v", a)
	}
	wantLife(t, newHost(t), a, lockkeeper.ProcessAlive)
}

func TestIdentifyNobody(t *testing.T) {
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	for _, pid := range []int{cmd.Process.Pid, 0, -1} {
		if p, err := Identify(pid); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
			t.Errorf("Identify(%d) = %+v, %v; want an input error", pid, p, err)
		}
	}
}

// shows: GP-32
func TestLifeIsJudgedOnlyWhereItCanBeSeen(t *testing.T) {
	h := newHost(t)
	c := launch(t, nil, helperArgv("sleep")...)
	live := identify(t, c.next("ready"))
	change := func(f func(*lockkeeper.Process)) lockkeeper.Process { p := live; f(&p); return p }

	for name, test := range map[string]struct {
		p    lockkeeper.Process
		want lockkeeper.Liveness
	}{
		"itself":                           {live, lockkeeper.ProcessAlive},
		"same number, later start":         {change(func(p *lockkeeper.Process) { p.Start++ }), lockkeeper.ProcessDead},
		"other boot, nothing known of it":  {change(func(p *lockkeeper.Process) { p.Boot = "other" }), lockkeeper.ProcessUnknown},
		"other machine":                    {change(func(p *lockkeeper.Process) { p.Boot, p.Host = "other", "other" }), lockkeeper.ProcessUnknown},
		"other namespace, number unused":   {change(func(p *lockkeeper.Process) { p.PIDNS, p.PID = "pid:[1]", 1<<30 }), lockkeeper.ProcessUnknown},
		"same boot, host renamed meantime": {change(func(p *lockkeeper.Process) { p.Host = "other" }), lockkeeper.ProcessAlive},
		"number unused":                    {change(func(p *lockkeeper.Process) { p.PID = 1 << 30 }), lockkeeper.ProcessDead},
		"no identity":                      {lockkeeper.Process{}, lockkeeper.ProcessUnknown},
	} {
		t.Run(name, func(t *testing.T) { wantLife(t, h, test.p, test.want) })
	}
}

func TestZombieIsDead(t *testing.T) {
	h := newHost(t)
	c := launch(t, nil, helperArgv("sleep")...)
	p := identify(t, c.next("ready"))
	c.cmd.Process.Kill()
	wantGone(t, h, p)
	if s, err := readStat(p.PID); err != nil || s.state != 'Z' {
		t.Fatalf("not a zombie: %+v, %v", s, err)
	}
	wantLife(t, h, p, lockkeeper.ProcessDead)
}

func TestStoppedIsAlive(t *testing.T) {
	c := launch(t, nil, helperArgv("sleep")...)
	p := identify(t, c.next("ready"))
	unix.Kill(p.PID, unix.SIGSTOP)
	wantLife(t, newHost(t), p, lockkeeper.ProcessAlive)
}

// A process whose first thread ended looks like a zombie and still writes files.
func TestZombieLeaderWithThreadsIsAlive(t *testing.T) {
	h := newHost(t)
	c := launch(t, nil, helperArgv("headless")...)
	p := identify(t, c.next("ready"))
	if s, err := readStat(p.PID); err != nil || s.state != 'Z' {
		t.Fatalf("first thread still there: %+v, %v", s, err)
	}
	wantLife(t, h, p, lockkeeper.ProcessAlive)
	c.cmd.Process.Kill()
	wantGone(t, h, p)
	wantLife(t, h, p, lockkeeper.ProcessDead)
}

func TestHostileName(t *testing.T) {
	h := newHost(t)
	c := launch(t, nil, helperArgv("named")...)
	p := identify(t, c.next("ready"))
	if s, err := readStat(p.PID); err != nil || s.name != ") R 1 ) (x" || s.parent != h.self.PID {
		t.Errorf("read as %+v, %v", s, err)
	}
	wantLife(t, h, p, lockkeeper.ProcessAlive)
	c.cmd.Process.Kill()
	wantGone(t, h, p)
	wantLife(t, h, p, lockkeeper.ProcessDead)
}

// shows: SW-71
func TestExitedFiresAtOnce(t *testing.T) {
	h := newHost(t)
	// A poll would be slow each time. The signal itself takes well under a millisecond, but a
	// busy machine can delay it.
	const tries, soon = 20, 100 * time.Millisecond
	for n := 1; ; n++ {
		c := launch(t, nil, helperArgv("sleep")...)
		p := identify(t, c.next("ready"))
		gone := h.Exited(t.Context(), p)
		select {
		case <-gone:
			t.Fatal("fired for a living process")
		default:
		}
		killed := time.Now()
		c.cmd.Process.Kill()
		<-gone
		took := time.Since(killed)
		<-h.Exited(t.Context(), p) // already dead: closed from the start
		if took < soon {
			return
		}
		if n == tries {
			t.Fatalf("fired after %s, and never before %s in %d tries", took, soon, tries)
		}
	}
}

func TestExitedEndsWithItsContext(t *testing.T) {
	h := newHost(t)
	c := launch(t, nil, helperArgv("sleep")...)
	p := identify(t, c.next("ready"))
	ctx, cancel := context.WithCancel(t.Context())
	gone := h.Exited(ctx, p)
	cancel()
	hd, err := openHandle(p.PID, p.Start)
	if err != nil {
		t.Fatal(err)
	}
	defer hd.close()
	if err := hd.wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("wait returned %v", err)
	}
	p.PIDNS = "pid:[1]"
	for _, ch := range []<-chan struct{}{gone, h.Exited(t.Context(), p)} {
		select {
		case <-ch:
			t.Error("closed although nothing exited")
		default:
		}
	}
}

func TestParseStatRefusesNonsense(t *testing.T) {
	for _, text := range []string{"", "1", "1 (x", "1 (x) R 1", ")(", "x (y) R 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 0"} {
		if s, err := parseStat([]byte(text)); err == nil {
			t.Errorf("%q read as %+v", text, s)
		}
	}
}

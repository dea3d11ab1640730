package process

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper"
)

// early is a helper that asks a keeper to start a command and stops the keeper before it can read
// the request. It prints the process record.
func early(dir string, argv []string) int {
	c := Command{Argv: argv, Grant: ownGrant("g-early"), presence: dir}
	for {
		if err := reaper.enter(); err != nil {
			panic(err)
		}
		command := exec.Command(argv[0], argv[1:]...)
		c.prepare(command)
		k, err := startKeeper(&c, command, false)
		if err != nil {
			panic(err)
		}
		unix.Kill(k.pid, unix.SIGSTOP)
		for s := k.stat; s.state != 'T'; {
			if s, err = readStat(k.pid); err != nil {
				panic(err)
			}
		}
		if limitMarkOf(k.pid, k.start).on(k.pid) { // the keeper was faster than this process
			unix.Kill(k.pid, unix.SIGCONT)
			k.dismiss()
			reaper.leave()
			continue
		}
		k.ask(wish{Start: true})
		p, err := Self()
		if err != nil {
			panic(err)
		}
		p.Group, p.Keeper, p.Presence = k.pid, k.start, k.present.name()
		if k.cgroup != nil {
			p.Cgroup = k.cgroup.path
		}
		text, err := json.Marshal(p)
		if err != nil {
			panic(err)
		}
		say("%s", text)
		return forever()
	}
}

// A keeper may be asked to start a command before it has started up itself. It does not start the
// command after the grant has passed to another holder, whether its supervisor was killed or
// overruled.
//
// shows: SW-71
func TestKeeperThatHasNotStartedUp(t *testing.T) {
	eachScene(t, func(t *testing.T, s *scene) {
		for _, supervisor := range []string{"killed", "overruled"} {
			t.Run(supervisor, func(t *testing.T) {
				if err := os.Truncate(s.work, 0); err != nil {
					t.Fatal(err)
				}
				c := s.start(t, "early", "", "sh", "-c", `echo > "$0"`, s.work)
				p := c.record()
				keeper := p
				keeper.PID, keeper.Start = p.Group, p.Keeper
				h := newHost(t)
				wantLife(t, h, keeper, lockkeeper.ProcessAlive)
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				end := h.EndWork
				if supervisor == "killed" {
					unix.Kill(p.PID, unix.SIGKILL)
					wantGone(t, h, p)
					end = h.EndLeftovers
				}
				if err := end(ctx, p, ownGrant("g-early")); err != nil {
					t.Error(err)
				}
				wantLife(t, h, keeper, lockkeeper.ProcessDead)
				unix.Kill(p.Group, unix.SIGCONT)
				wantGone(t, h, keeper)
				if info, err := os.Stat(s.work); err != nil || info.Size() > 0 {
					t.Errorf("the command ran after the grant was handed on: %v", err)
				}
			})
		}
	})
}

// A keeper that is not visible does not start its command in a control group that was ended.
func TestUnseenKeeperThatHasNotStartedUp(t *testing.T) {
	if newCgroupForTest(t) == nil {
		t.Skip("no control group can be made here")
	}
	dir := t.TempDir()
	h, err := NewHost(dir)
	if err != nil {
		t.Fatal(err)
	}
	ran := filepath.Join(dir, "ran")
	p := launch(t, nil, helperArgv("early", dir, "touch", ran)...).record()
	keeper := identify(t, p.Group)
	p.PIDNS = "pid:[1]"
	wantLife(t, h, p, lockkeeper.ProcessAlive)
	if err := h.EndWork(t.Context(), p, ownGrant("g-early")); err != nil {
		t.Error(err)
	}
	unix.Kill(keeper.PID, unix.SIGCONT)
	wantGone(t, h, keeper)
	if _, err := os.Stat(ran); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the command ran after the grant was handed on: %v", err)
	}
}

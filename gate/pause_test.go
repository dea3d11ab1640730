package gate_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"lockkeeper"
	"lockkeeper/durable/durabletest"
	"lockkeeper/gate"
	"lockkeeper/store/storetest"
)

// A pause is one way to stop a holder and take over its paths.
type pause struct {
	scene   string
	at      errand // the point at which the holder stops
	ended   bool   // the server ends the holder's sessions meanwhile
	deletes bool   // the next holder removes the files instead of writing them
}

// A holder that is stopped at any step outside a transaction loses its paths when its lease
// expires. When it continues, it changes nothing: the next holder's content stays.
//
// shows: SW-36 SW-38 GP-4 CF-11
func TestPausedHolder(t *testing.T) {
	for _, store := range []string{"SQLite", "PostgreSQL", "PostgreSQL with its session ended"} {
		for _, name := range append([]string{"two"}, kinds...) {
			kind, _, ended := strings.Cut(store, " ")
			if ended && !isFor(name, "create", "replace", "delete") {
				continue
			}
			t.Run(store+"/"+name, func(t *testing.T) {
				t.Parallel()
				p, w := newPlace(t, kind, nil)
				h := &interceptor{t: t, place: p, w: w, writer: start(t, p)}
				every, rounds := 3, 1
				switch {
				case storetest.Torture() > 1:
					every, rounds = 1, 5*storetest.Torture()
				case kind == "PostgreSQL":
					every = 7
				}
				for round := range rounds {
					one := pause{scene: name, ended: ended, deletes: round%2 == 1}
					for _, around := range []string{"before", "after"} {
						one.at = errand{Step: -1, Around: around}
						if one.deletes = !one.deletes; !h.rob(one) {
							t.Errorf("%s the transaction: it did not stop", around)
						}
					}
					for step, stopped := 0, true; stopped && !t.Failed(); step++ {
						if step%every == every/2 {
							one.at, one.deletes = errand{Step: step}, (round+step/every)%2 == 1
							stopped = h.rob(one)
						}
					}
				}
			})
		}
	}
}

// An interceptor is the next holder, which takes over while the writer is stopped.
type interceptor struct {
	t      *testing.T
	place  place
	w      *world
	writer *peer
}

// rob stops a writer, takes over its paths, writes other content and resumes the writer. It
// returns false if the writer finished before that step.
func (h *interceptor) rob(one pause) (stopped bool) {
	t, w := h.t, h.w
	t.Helper()
	s := scenes()[one.scene]
	plantScan(t, h.place.Root, s.old)
	if one.ended { // start a writer with a live session
		h.writer.kill()
		h.writer = start(t, h.place)
	}
	g := w.hold("otter", s.paths()...)
	one.at.Do, one.at.Scene, one.at.Grant, one.at.Token, one.at.Signal = "commit", one.scene, g.ID, g.Token, syscall.SIGSTOP
	h.writer.ask(one.at)
	late, stopped := h.writer.stops()
	if !stopped {
		if late.Error != "" && one.at.Fails == "" {
			t.Errorf("it failed without a conflict: %s", late.Error)
		}
		w.releases(g)
		return false
	}
	if one.ended {
		endSessions(t, h.writer.cmd.Process.Pid)
	}
	h.overtake(one, g.ID, s)
	return true
}

// overtake takes over the paths of a grant whose process is stopped, writes other content and
// resumes the process.
func (h *interceptor) overtake(one pause, grantID string, s scene) {
	t, w := h.t, h.w
	t.Helper()
	must(t, h.place.pass(leaseOver))
	next := w.hold("heron", s.paths()...)
	state, decided := agreed(w, grantID, s)
	if decided && state != lockkeeper.Committed && one.at.Fails == "" {
		t.Errorf("%+v: a decided landing was rolled back", one)
	}
	w.commit(next, h.overwrite(s, one.deletes)...)
	left := scan(t, h.place.Root, ".lockkeeper")

	late := h.writer.goOn()
	if d := differences(left, scan(t, h.place.Root, ".lockkeeper")); len(d) > 0 {
		t.Errorf("%+v: the late writer changed what the next holder left: %v", one, d)
	}
	switch {
	case late.Error == "" && late.Landing != 0:
		if l, err := w.gate.Landing(t.Context(), late.Landing); err != nil || l.State != lockkeeper.Committed {
			t.Errorf("%+v: the late writer was told that it landed: %v, %v", one, l, err)
		}
	case one.at.Do == "commit" && late.Error == "":
		t.Errorf("%+v: the late writer was not told that it came too late", one)
	}
	if _, err := w.gate.Recover(t.Context()); err != nil {
		t.Error(err)
	}
	w.noStages()
	w.releases(next)
}

// A holder that is stopped during a rollback is overtaken in the same way.
//
// shows: SW-38 GP-4
func TestPausedWhileRollingBack(t *testing.T) {
	t.Parallel()
	p, w := newPlace(t, "SQLite", nil)
	h := &interceptor{t: t, place: p, w: w, writer: start(t, p)}
	for round := range storetest.Torture() {
		for step, stopped := 0, true; stopped && !t.Failed(); step++ {
			stopped = h.rob(pause{scene: "two", at: errand{Step: step, Fails: durabletest.Move}, deletes: (round+step)%2 == 1})
		}
	}
}

// A recovery that is stopped at any step is overtaken by the next one, as a writer is. When it
// continues, it changes nothing.
//
// shows: GP-4 GP-31
func TestPausedRecovery(t *testing.T) {
	every := map[string][2]int{"deep": {6, 7}, "delete": {3, 4}, "two": {8, 5}, "twenty": {41, 31}}
	for name, stride := range every {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, steps := scenes()[name], writerSteps(t, name)
			for first := steps / 2; first <= steps; first += apart(steps, stride[0]) {
				for step, stopped := 0, true; stopped; step++ {
					if sampled(step, stride[1]) {
						t.Run(fmt.Sprint("writer at ", first, " recovery at ", step), func(t *testing.T) {
							a, _ := crash(t, "SQLite", name, errand{Step: first})
							h := &interceptor{t: t, place: a.place, w: a.place.visit(t), writer: start(t, a.place)}
							h.writer.ask(errand{Do: "resume", Grant: a.grant.ID, Step: step, Signal: syscall.SIGSTOP})
							var late answer
							if late, stopped = h.writer.stops(); stopped {
								h.overtake(pause{scene: name, deletes: step%2 == 1}, a.grant.ID, s)
							} else if late.Error != "" {
								t.Errorf("it failed without a conflict: %s", late.Error)
							}
						})
					}
				}
			}
		})
	}
}

// Several concurrent recoveries of one landing reach the same result.
//
// shows: GP-4 GP-31
func TestRecoveriesAtOnce(t *testing.T) {
	for _, name := range []string{"deep", "two", "twenty"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			steps := writerSteps(t, name)
			for round := range storetest.Torture() {
				a, _ := crash(t, "SQLite", name, errand{Step: steps - 1 - (2*round)%(steps/2)})
				a.meddled(false, 0)
				var peers []*peer
				for range 3 {
					peers = append(peers, start(t, a.place))
				}
				for _, c := range peers {
					c.ask(errand{Do: "resume", Grant: a.grant.ID})
				}
				for _, c := range peers {
					if got, ok := c.answer(); !ok || got.Error != "" {
						t.Errorf("round %d: %s", round, got.Error)
					}
					c.kill()
				}
				a.clearUp(true)
			}
		})
	}
}

// overwrite returns the changes that the next holder makes to the paths of a scene.
func (h *interceptor) overwrite(s scene, deletes bool) (changes []gate.Change) {
	for _, path := range s.paths() {
		if !deletes {
			changes = append(changes, gate.Put(path, []byte("the next holder's")))
		} else if _, err := os.Lstat(filepath.Join(h.place.Root, path)); err == nil {
			changes = append(changes, gate.Delete(path))
		}
	}
	if len(changes) == 0 { // nothing to delete, so write instead
		return h.overwrite(s, false)
	}
	return changes
}

// endSessions makes the server end all sessions of a process.
func endSessions(t testing.TB, pid int) {
	t.Helper()
	ports := portsOf(t, pid)
	conn, err := pgx.Connect(t.Context(), os.Getenv("LOCKKEEPER_TEST_POSTGRES"))
	must(t, err)
	defer conn.Close(context.Background())
	var ended int
	must(t, conn.QueryRow(t.Context(), `SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity WHERE client_port = ANY($1)`, ports).Scan(&ended))
	if ended == 0 {
		t.Fatal("the writer had no session that could be ended")
	}
}

// portsOf returns the local ports of a process's connections.
func portsOf(t testing.TB, pid int) (ports []int) {
	t.Helper()
	sockets := map[string]bool{}
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	must(t, err)
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil {
			sockets[to] = true
		} else if !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	table, err := os.ReadFile("/proc/net/tcp")
	must(t, err)
	for line := range strings.Lines(string(table)) {
		f := strings.Fields(line)
		if len(f) < 10 || !sockets["socket:["+f[9]+"]"] {
			continue
		}
		_, port, _ := strings.Cut(f[1], ":")
		n, err := strconv.ParseUint(port, 16, 16)
		must(t, err)
		ports = append(ports, int(n))
	}
	return ports
}

package lease_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper/internal/compat/lease"
)

const (
	contenderEnv = "LOCKKEEPER_TEST_CONTENDER" // makes the test binary a contender: file and owner
	logEnv       = "LEASE_LOG"                 // the contenders' event log
	passedEnv    = "LEASE_PASSED"              // simulated seconds to add to the clocks
)

func monotonic() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err)
	}
	return ts.Nano()
}

// passing reads the real clocks plus the simulated time.
func passing() lease.Reading {
	text, err := os.ReadFile(os.Getenv(passedEnv))
	if err != nil {
		panic(err)
	}
	seconds, err := strconv.Atoi(string(text))
	if err != nil {
		panic(err)
	}
	passed := time.Duration(seconds) * time.Second
	return lease.Reading{Wall: time.Now().Round(0).Add(passed), Ticks: time.Duration(monotonic()) + passed, Origin: "boot"}
}

// contend acquires the file repeatedly and logs what happens, until it is killed.
func contend(told string) int {
	path, owner, _ := strings.Cut(told, "|")
	log, err := os.OpenFile(os.Getenv(logEnv), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		panic(err)
	}
	note := func(event string) { fmt.Fprintf(log, "%d ours %s %s\n", monotonic(), owner, event) }
	opt := lease.Defaults()
	opt.Owner, opt.Clock = owner, passing
	for ctx := context.Background(); ; time.Sleep(rand.N(20 * time.Millisecond)) {
		l := lease.New(path, opt)
		err := l.Acquire(ctx, time.Minute)
		var held *lease.HeldError
		if errors.As(err, &held) {
			continue
		}
		if err != nil {
			note("failed " + strconv.Quote(err.Error()))
			return 1
		}
		note("enter")
		time.Sleep(rand.N(3 * time.Millisecond))
		note("renew")
		var lost *lease.LostError
		switch err := l.Renew(ctx); {
		case err == nil:
			note("held")
		case errors.As(err, &lost):
			note("lost")
		default:
			note("failed " + strconv.Quote(err.Error()))
			return 1
		}
		if _, err := l.Release(ctx); err != nil {
			note("failed " + strconv.Quote(err.Error()))
			return 1
		}
	}
}

// An event is a line of the contenders' log.
type event struct {
	at                int64
	side, owner, what string
}

func parseEvent(line string) (e event, ok bool) {
	parts := strings.SplitN(strings.TrimSpace(line), " ", 4)
	if len(parts) < 4 {
		return e, false
	}
	at, err := strconv.ParseInt(parts[0], 10, 64)
	return event{at, parts[1], parts[2], parts[3]}, err == nil
}

// A ring is a set of processes that compete for one lease file: Lockkeeper's and the Python tool's.
type ring struct {
	*scene
	log, passed string
	started     int
	running     map[string]*exec.Cmd // by owner
	killed      map[string]int64     // by owner
	orphans     int                  // files that no holder released
	draw        *rand.Rand
}

func (r *ring) start(side string) {
	r.started++
	owner := fmt.Sprintf("%s-%d", side, r.started)
	env := []string{logEnv + "=" + r.log, passedEnv + "=" + r.passed}
	var cmd *exec.Cmd
	if side == "ours" {
		cmd = exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), append(env, contenderEnv+"="+r.path+"|"+owner)...)
		cmd.Stderr = os.Stderr
	} else {
		cmd = pythonCommand(r.t, "contend", r.path, owner, env...)
	}
	must(r.t, cmd.Start())
	r.running[owner] = cmd
}

// kill kills a contender, starts another one, and, if the victim held the file, lets the
// file expire.
func (r *ring) kill(owner string) {
	r.killed[owner] = monotonic()
	cmd := r.running[owner]
	must(r.t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	delete(r.running, owner)
	text, _ := os.ReadFile(r.path)
	var left payload
	if json.Unmarshal(text, &left) == nil && left.Owner == owner {
		r.pass()
	}
	side, _, _ := strings.Cut(owner, "-")
	r.start(side)
}

// pass lets every lease file expire.
func (r *ring) pass() {
	was, err := os.ReadFile(r.passed)
	must(r.t, err)
	seconds, err := strconv.Atoi(string(was))
	must(r.t, err)
	must(r.t, os.WriteFile(r.passed+".next", []byte(strconv.Itoa(seconds+1800+120+2)), 0o644))
	must(r.t, os.Rename(r.passed+".next", r.passed))
}

func (r *ring) stop() {
	for owner, cmd := range r.running {
		r.killed[owner] = monotonic()
		_ = cmd.Process.Kill() // it may have ended by itself
		_ = cmd.Wait()
	}
	clear(r.running)
}

// A stint is a period in which a contender believed that it held the file.
type stint struct {
	event
	until int64 // when it began to renew, or was killed
	whole bool  // the renewal succeeded
}

// stints returns what each contender believed.
func (r *ring) stints(events []event) (list []stint) {
	open := map[string]int{}
	for _, e := range events {
		n, inside := open[e.owner]
		switch {
		case strings.HasPrefix(e.what, "failed"):
			r.t.Errorf("%s: %s", e.owner, e.what)
		case e.what == "enter":
			open[e.owner] = len(list)
			list = append(list, stint{event: e, until: cmp.Or(r.killed[e.owner], math.MaxInt64)})
		case inside && e.what == "renew":
			list[n].until = e.at
		case inside:
			list[n].whole = e.what == "held"
			delete(open, e.owner)
		}
	}
	return list
}

func (s stint) meets(other stint) bool { return s.at < other.until && other.at < s.until }

// Both tools contend for one file while contenders are killed. There are never two
// Lockkeeper holders, and no current file is broken by this package. If two stints
// overlap, at most one survives its next renewal.
//
// shows: LE-5 LE-8 LE-25 GP-34 GP-35 GP-36
func TestContention(t *testing.T) {
	rounds := 100 * torture()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dir := t.TempDir()
	s := newScene(t)
	must(t, os.MkdirAll(filepath.Dir(s.path), 0o755))
	r := &ring{scene: s, log: filepath.Join(dir, "log"), passed: filepath.Join(dir, "passed"), running: map[string]*exec.Cmd{},
		killed: map[string]int64{}, draw: rand.New(rand.NewPCG(seed, 3))}
	must(t, os.WriteFile(r.log, nil, 0o644))
	must(t, os.WriteFile(r.passed, []byte("0"), 0o644))
	t.Cleanup(r.stop)
	for range 3 {
		r.start("ours")
		r.start("foreign")
	}
	events := r.watch(rounds)
	r.stop()
	stints := r.stints(events)
	count := map[string]int{}
	for i, a := range stints {
		count[a.side]++
		if !a.whole {
			count[a.side+" lost or killed"]++
		}
		for _, b := range stints[:i] {
			switch {
			case !a.meets(b) || a.owner == b.owner:
			case a.side == "ours" && b.side == "ours":
				t.Errorf("two Lockkeeper holders: %+v and %+v", b, a)
			case a.side != b.side && a.whole && b.whole:
				t.Errorf("both held it: %+v and %+v", b, a)
			case a.side != b.side:
				count["met, and noticed"]++
			}
		}
	}
	t.Logf("%d rounds: %v, %d orphans", rounds, count, r.orphans)
	if r.orphans > 1+rounds/500 {
		t.Errorf("%d lease files were never released", r.orphans)
	}
	if count["ours"] < rounds/10 || count["foreign"] < rounds/10 {
		t.Errorf("too little contention: %v", count)
	}
	r.checkBreaks()
}

// watch reads the log for the given number of rounds and sometimes kills the contender
// that just acquired the file.
func (r *ring) watch(rounds int) (events []event) {
	log, err := os.Open(r.log)
	must(r.t, err)
	defer log.Close()
	lines := bufio.NewReader(log)
	var line string
	for last := time.Now(); rounds > 0; {
		part, err := lines.ReadString('\n')
		line += part
		if errors.Is(err, io.EOF) {
			if time.Since(last) > 30*time.Second {
				// A foreign holder believed that its file was stolen and left it, or was
				// suspended for two seconds while creating it.
				last = time.Now()
				r.orphans++
				r.pass()
			}
			time.Sleep(time.Millisecond)
			continue
		}
		must(r.t, err)
		e, ok := parseEvent(line)
		if !ok {
			r.t.Fatalf("invalid log line %q", line)
		}
		line = ""
		events = append(events, e)
		if e.what == "enter" {
			last = time.Now()
			rounds--
			if r.running[e.owner] != nil && r.draw.IntN(8) == 0 {
				r.kill(e.owner)
			}
		}
	}
	return events
}

// checkBreaks checks that this package broke only files of killed contenders.
func (r *ring) checkBreaks() {
	text, err := os.ReadFile(r.path + ".audit.jsonl")
	must(r.t, err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	for _, line := range lines {
		var b struct {
			Previous *struct{ Owner string } `json:"previous_holder"`
		}
		must(r.t, json.Unmarshal([]byte(line), &b))
		if b.Previous != nil && r.killed[b.Previous.Owner] == 0 {
			r.t.Errorf("a current lease file was broken: %s", line)
		}
	}
	r.t.Logf("ours broke %d, of %d killed", len(slices.Compact(lines)), len(r.killed))
}

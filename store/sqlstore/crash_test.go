package sqlstore

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/internal/machine/process"
	"lockkeeper/lock"
	"lockkeeper/store"
	"lockkeeper/store/storetest"
)

func init() { helpers["work"] = work }

// A section is a period in which one worker held locks, as recorded by that worker.
type section struct {
	Grant string            `json:"grant"`
	Fence uint64            `json:"fence"`
	Locks []lockkeeper.Lock `json:"locks"`
	At    int64             `json:"at"` // on the clock that all processes share
	End   int64             `json:"end,omitempty"`
}

func mono() int64 { return int64(monotonic().Lease) }

// engine returns a lock manager that checks whether processes are alive, as the program does.
func engine(st store.Store) (*lock.Manager, lockkeeper.Process, error) {
	host, err := process.NewHost("")
	if err != nil {
		return nil, lockkeeper.Process{}, err
	}
	self, err := process.Self()
	return lock.New(st, lock.Options{Processes: host}), self, err
}

// territory lists paths that overlap in every way.
var territory = []string{"a", "a/x", "a/x/y", "b", "b/y", "c", "c/d/e", "c/d/f"}

// work acquires, waits, renews, runs children and releases until it is killed.
func work(ctx context.Context, _ site, st store.Store, args []string) error {
	seed, err := strconv.ParseUint(args[1], 10, 64)
	if err != nil {
		return err
	}
	rnd := rand.New(rand.NewPCG(seed, 0))
	m, self, err := engine(st)
	if err != nil {
		return err
	}
	diary, err := os.OpenFile(args[0], os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	note := json.NewEncoder(diary) // each entry is one write
	say("ready")
	for {
		req := lockkeeper.Request{Holder: fmt.Sprint("worker ", os.Getpid()), Process: &self}
		for range 1 + rnd.IntN(3) {
			req.Locks = append(req.Locks, lockkeeper.Lock{Mode: lockkeeper.Read + 2*lockkeeper.Mode(rnd.IntN(2)),
				Target: lockkeeper.Target{Path: territory[rnd.IntN(len(territory))], Kind: lockkeeper.File}})
		}
		var g *lock.Grant
		if rnd.IntN(3) == 0 {
			g, err = m.TryAcquire(ctx, req)
		} else {
			g, err = m.Acquire(ctx, req, time.Duration(rnd.IntN(100))*time.Millisecond)
		}
		switch lockkeeper.CodeOf(err) {
		case lockkeeper.CodeBlocked, lockkeeper.CodeTimeout:
			continue
		}
		if err != nil {
			return err
		}
		s := section{Grant: g.ID, Fence: g.Fence, Locks: g.Locks, At: mono()}
		if err := note.Encode(s); err != nil {
			return err
		}
		switch rnd.IntN(8) {
		case 0: // a child left running by a killed worker must not outlive the grant
			_, err = process.Run(ctx, process.Command{Argv: []string{"sh", "-c", "sleep 60 & sleep 0.02"}, Grant: g.ID,
				Started: func(p lockkeeper.Process) error { _, err := m.SetProcess(ctx, g.ID, g.Token, p); return err }})
		case 1, 2, 3:
			_, err = m.Renew(ctx, g.ID, g.Token)
		case 4, 5, 6:
			time.Sleep(time.Duration(rnd.IntN(20)) * time.Millisecond)
		}
		if err != nil {
			return err
		}
		s.End = mono()
		if err := note.Encode(s); err != nil {
			return err
		}
		if err := g.Release(ctx); err != nil {
			return err
		}
	}
}

// Workers are killed, five at a time, at random instants of their work.
//
// shows: SW-43 PL-42
func TestKilledAtAnyInstant(t *testing.T) {
	const victims = 5
	rounds := storetest.Times(8, 20)
	sites(t, func(t *testing.T, s site) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		rnd := rand.New(rand.NewPCG(seed, 1))
		st := s.store(t, Options{})
		m, self, err := engine(st)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		dir := t.TempDir()
		j := journal{t: t, open: map[string]section{}}
		for round := range rounds {
			var peers []*peer
			for i := range victims {
				diary := filepath.Join(dir, fmt.Sprint(round, "-", i))
				peers = append(peers, start(t, "work", s, diary, fmt.Sprint(rnd.Uint64())))
			}
			for _, p := range peers {
				p.expect("ready")
			}
			time.Sleep(time.Duration(30+rnd.IntN(100)) * time.Millisecond)
			for i, p := range peers {
				killed := mono()
				p.kill()
				j.read(filepath.Join(dir, fmt.Sprint(round, "-", i)), killed)
				if i == 0 {
					time.Sleep(time.Duration(rnd.IntN(10)) * time.Millisecond) // the other workers must cope with what it left
				}
			}
			// The time limit is much shorter than the half-hour leases of the killed workers.
			g, err := m.Acquire(t.Context(), lockkeeper.Request{Holder: "next", Process: &self, Locks: write("a", "b", "c")}, hung)
			if err != nil {
				t.Fatalf("round %d: no worker lives, and the next acquirer gets %v", round, err)
			}
			j.sections = append(j.sections, section{Grant: g.ID, Fence: g.Fence, Locks: g.Locks, At: mono(), End: mono()})
			j.nothingRuns()
			sound(t, s, 1)
			if err := g.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		j.judge()
		t.Logf("%d sections, %d of them cut short", len(j.sections), j.cut)
		numbered(t, m)
	})
}

// A journal collects the sections recorded by all workers.
type journal struct {
	t        *testing.T
	sections []section
	open     map[string]section
	cut      int
}

// read loads the diary of a worker that was killed after the given instant.
func (j *journal) read(path string, killed int64) {
	j.t.Helper()
	f, err := os.Open(path)
	if err != nil {
		j.t.Fatal(err)
	}
	defer f.Close()
	var last *section
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var s section
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			break // the worker was killed while writing this entry
		}
		if s.End == 0 {
			last = &s
			continue
		}
		last = nil
		j.sections = append(j.sections, s)
	}
	if last != nil { // killed while holding: the section lasted at least until then
		j.cut++
		last.End = killed
		j.sections = append(j.sections, *last)
		j.open[last.Grant] = *last
	}
}

// nothingRuns checks that no process of a dead holder's grant still runs.
func (j *journal) nothingRuns() {
	j.t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		j.t.Fatal(err)
	}
	for _, f := range files {
		env, err := os.ReadFile(f)
		if err != nil {
			continue // the process has exited, or we may not read it
		}
		for v := range strings.SplitSeq(string(env), "\x00") {
			if id, ok := strings.CutPrefix(v, process.GrantVariable+"="); ok {
				if _, ours := j.open[id]; ours {
					j.t.Errorf("%s still runs under grant %s of a dead holder", f, id)
				}
			}
		}
	}
}

// judge reports pairs of sections that should have excluded each other.
func (j *journal) judge() {
	j.t.Helper()
	slices.SortFunc(j.sections, func(a, b section) int { return int(a.At - b.At) })
	fences := map[uint64]string{}
	for i, a := range j.sections {
		if other, dup := fences[a.Fence]; dup {
			j.t.Errorf("fence %d was given to %s and to %s", a.Fence, other, a.Grant)
		}
		fences[a.Fence] = a.Grant
		for _, b := range j.sections[i+1:] {
			if b.At < a.End && conflict(a.Locks, b.Locks) {
				j.t.Errorf("two holders at once, for %v:\n%+v\n%+v", time.Duration(a.End-b.At), a, b)
			}
			if b.Fence < a.Fence && conflict(a.Locks, b.Locks) {
				j.t.Errorf("fence %d after %d", b.Fence, a.Fence)
			}
		}
	}
	if j.cut == 0 {
		j.t.Error("no worker was killed while it held a lock: the test shows nothing")
	}
}

func conflict(a, b []lockkeeper.Lock) bool {
	for _, l := range a {
		if slices.ContainsFunc(b, l.Conflicts) {
			return true
		}
	}
	return false
}

// sound checks the tables directly: they must contain the expected number of requests, each
// with exactly its targets.
func sound(t *testing.T, s site, requests int) {
	t.Helper()
	if _, out := rows(t, s, `SELECT count(*) FROM requests WHERE `+s.of("space")); out[0][0] != fmt.Sprint(requests) {
		t.Errorf("%s requests, want %d", out[0][0], requests)
	}
	count := `json_array_length(r.locks)`
	if s.kind == "postgres" {
		count = `json_array_length(r.locks::json)`
	} else if _, out := rows(t, s, `PRAGMA integrity_check`); out[0][0] != "ok" {
		t.Errorf("integrity: %v", out)
	}
	if _, out := rows(t, s, `SELECT ticket FROM targets WHERE `+s.of("space")+` AND NOT EXISTS
 (SELECT 1 FROM requests r WHERE r.space = targets.space AND r.ticket = targets.ticket)`); len(out) > 0 {
		t.Errorf("targets without a request: %v", out)
	}
	if _, out := rows(t, s, `SELECT r.ticket FROM requests r WHERE `+s.of("r.space")+` AND `+count+` <>
 (SELECT count(*) FROM targets t WHERE t.space = r.space AND t.ticket = r.ticket)`); len(out) > 0 {
		t.Errorf("requests with a part of their targets: %v", out)
	}
}

// numbered checks that the log has every number once, in order.
func numbered(t *testing.T, m *lock.Manager) {
	t.Helper()
	last := uint64(0)
	for {
		page, err := m.Events(t.Context(), store.EventQuery{After: last, Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page {
			if e.Seq != last+1 {
				t.Fatalf("event %d after %d", e.Seq, last)
			}
			last = e.Seq
		}
		if len(page) == 0 {
			return
		}
	}
}

// A creator that is killed at any instant leaves no half-made database.
func TestKilledWhileCreating(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 2))
	dir := t.TempDir()
	whole := 0
	for i := range 20 {
		s := site{kind: "sqlite", where: filepath.Join(dir, fmt.Sprint(i, ".db")), space: "s"}
		p := start(t, "create", s)
		p.expect("creating")
		time.Sleep(time.Duration(rnd.IntN(60_000)) * time.Microsecond)
		p.kill()
		st, err := OpenSQLite(t.Context(), s.where, s.space, Options{})
		if err == nil {
			whole++
			err = st.Close()
		} else if _, gone := os.Stat(s.where); errors.Is(gone, os.ErrNotExist) {
			err = CreateSQLite(t.Context(), s.where, s.space)
		}
		if err != nil {
			t.Errorf("attempt %d: %v", i, err)
		}
	}
	t.Logf("%d of 20 were whole", whole)
}

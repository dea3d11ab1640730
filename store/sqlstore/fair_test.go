package sqlstore

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"lockkeeper/lock"
	"lockkeeper/store"
	"lockkeeper/store/storetest"
)

func init() {
	helpers["queue"] = queue
	helpers["hammer"] = hammer
	helpers["client"] = client
}

// wanted joins the wait list, prints "waiting", and returns once it has the grant.
func wanted(ctx context.Context, m *lock.Manager, holder string) (*lock.Grant, error) {
	place, err := m.NewPosition(request(holder, "wanted"))
	if err != nil {
		return nil, err
	}
	g, err := place.Poll(ctx)
	say("waiting")
	for err == nil && g == nil {
		<-place.Woken()
		g, err = place.Poll(ctx)
	}
	return g, err
}

// queue waits for one grant and records that it got it.
func queue(ctx context.Context, _ site, st store.Store, args []string) error {
	g, err := wanted(ctx, lock.New(st, lock.Options{WaitLease: time.Minute}), args[0])
	if err != nil {
		return err
	}
	f, err := os.OpenFile(args[1], os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := fmt.Fprintln(f, args[0]); err != nil {
		return err
	}
	return g.Release(ctx)
}

func TestServedInOrder(t *testing.T) {
	sites(t, func(t *testing.T, s site) {
		m := lock.New(s.store(t, Options{}), lock.Options{})
		first, err := m.TryAcquire(t.Context(), request("first", "wanted"))
		if err != nil {
			t.Fatal(err)
		}
		served := filepath.Join(t.TempDir(), "served")
		var peers []*peer
		for i := range 16 {
			peers = append(peers, start(t, "queue", s, fmt.Sprint("w", i), served))
		}
		for _, p := range peers {
			p.expect("waiting")
		}
		entries, err := m.Requests(t.Context()) // in ticket order
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, e := range entries[1:] {
			want = append(want, e.Holder)
		}
		if err := first.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, p := range peers {
			if err := p.wait(); err != nil {
				t.Error(err)
			}
		}
		text, err := os.ReadFile(served)
		if got := strings.Fields(string(text)); err != nil || len(want) != 16 || !slices.Equal(got, want) {
			t.Errorf("served %v, want %v, %v", got, want, err)
		}
	})
}

// hammerRounds is how often the fastest process of TestNobodyStarves is served.
const hammerRounds = 25

// hammer acquires and releases one path until one of its processes was served hammerRounds times.
// That process makes a file, which ends the others. So all of them compete to the end.
func hammer(ctx context.Context, _ site, st store.Store, args []string) error {
	m := lock.New(st, lock.Options{WaitLease: time.Minute})
	g, err := wanted(ctx, m, args[0])
	if err != nil {
		return err
	}
	served := 0
	for {
		if err := g.Release(ctx); err != nil {
			return err
		}
		if g, err = m.Acquire(ctx, request(args[0], "wanted"), time.Minute); err != nil {
			return err
		}
		if _, err := os.Stat(args[1]); err == nil {
			break
		}
		if served++; served == hammerRounds {
			if err := os.WriteFile(args[1], nil, 0o600); err != nil {
				return err
			}
			break
		}
	}
	say("served %d", served)
	return g.Release(ctx)
}

func TestNobodyStarves(t *testing.T) {
	sites(t, func(t *testing.T, s site) {
		m := lock.New(s.store(t, Options{}), lock.Options{})
		first, err := m.TryAcquire(t.Context(), request("first", "wanted"))
		if err != nil {
			t.Fatal(err)
		}
		end := filepath.Join(t.TempDir(), "end")
		var peers []*peer
		for i := range 8 {
			peers = append(peers, start(t, "hammer", s, fmt.Sprint("w", i), end))
		}
		for _, p := range peers {
			p.expect("waiting")
		}
		if err := first.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		var served []int
		for _, p := range peers {
			n, err := strconv.Atoi(p.expect("served"))
			if err != nil {
				t.Fatal(err)
			}
			served = append(served, n)
		}
		// A busy machine gives some processes a multiple of the time of others.
		if least, most := slices.Min(served), slices.Max(served); least == 0 || 5*least+4 < most {
			t.Errorf("served %v", served)
		}
		t.Logf("served %v", served)
	})
}

// client records a history of random operations.
func client(ctx context.Context, _ site, st store.Store, args []string) error {
	number, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	ops, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	seed, err := strconv.ParseUint(args[2], 10, 64)
	if err != nil {
		return err
	}
	f, err := os.Create(args[3])
	if err != nil {
		return err
	}
	defer f.Close()
	say("ready")
	var line [1]byte
	if _, err := os.Stdin.Read(line[:]); err != nil {
		return err
	}
	return storetest.RunClient(ctx, lock.New(st, lock.Options{}), number, ops, seed, f)
}

// Eight processes that use one space observe the same order of operations.
//
// shows: SW-43 DL-11 DL-12 DL-13
func TestLinearizableAcrossProcesses(t *testing.T) {
	sites(t, func(t *testing.T, s site) {
		const clients, ops = 8, 40
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		dir := t.TempDir()
		var peers []*peer
		for i := range clients {
			peers = append(peers, start(t, "client", s, fmt.Sprint(i), fmt.Sprint(ops*storetest.Torture()), fmt.Sprint(seed), filepath.Join(dir, fmt.Sprint(i))))
		}
		for _, p := range peers {
			p.expect("ready")
		}
		for _, p := range peers {
			if _, err := p.in.Write([]byte("\n")); err != nil {
				t.Fatal(err)
			}
		}
		var all []storetest.Op
		for i, p := range peers {
			if err := p.wait(); err != nil {
				t.Error(err)
			}
			text, err := os.ReadFile(filepath.Join(dir, fmt.Sprint(i)))
			if err != nil {
				t.Fatal(err)
			}
			h, err := storetest.ReadHistory(bytes.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, h...)
		}
		if err := storetest.CheckHistories(all, time.Minute); err != nil {
			t.Error(err)
		}
		t.Logf("%d operations", len(all))
	})
}

// Eight stores, each with its own connections, observe the same order of operations.
//
// shows: SW-43 DL-11 DL-12 DL-13
func TestLinearizableAcrossConnections(t *testing.T) {
	s := postgresSite(t)
	storetest.Linearizable(t, 8, 40, func(int) store.Store { return s.store(t, Options{}) })
}

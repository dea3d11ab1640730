package run

import (
	"context"
	"encoding/json"
	"os"
	"sync"
	"testing"
	"time"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/fleet"
	"lockkeeper/internal/git/gittest"
	"lockkeeper/internal/git/parcel"
	"lockkeeper/lock"
	"lockkeeper/sched"
	"lockkeeper/store"
	"lockkeeper/store/memstore"
)

// A board keeps posts in memory.
type board struct {
	store.Store

	mu    sync.Mutex
	posts map[string]store.Post
	last  uint64
	after func(kind string) // called after posts were read, before they are returned
}

func (b *board) Posts(_ context.Context, kind string) (list []store.Post, err error) {
	b.mu.Lock()
	for _, p := range b.posts {
		if p.Kind == kind {
			p.Left = p.TTL
			list = append(list, p)
		}
	}
	b.mu.Unlock()
	b.after(kind)
	return list, nil
}

func (b *board) Put(_ context.Context, p store.Post) (uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := p.Kind + "/" + p.Key
	if b.posts[key].Version != p.Version {
		return 0, nil
	}
	b.last++
	p.Version, p.At = b.last, time.Now()
	b.posts[key] = p
	return p.Version, nil
}

func (b *board) Drop(_ context.Context, kind, key string, version uint64) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	had := b.posts[kind+"/"+key].Version == version
	if had {
		delete(b.posts, kind+"/"+key)
	}
	return had, nil
}

// A call that is offered while the crew reads the list of calls is not taken for one that another
// process removed.
func TestCallOfferedDuringLook(t *testing.T) {
	st := memstore.New("test", memstore.Options{})
	b := &board{Store: st, posts: map[string]store.Post{}, after: func(string) {}}
	queue, err := sched.New(st, lock.New(st, lock.Options{}), sched.Options{Phases: flow.QueueOrder()})
	if err != nil {
		t.Fatal(err)
	}
	p := &Pipeline{opt: Options{Queue: queue, Run: "r1", Limits: Limits{Agents: 1, Tests: 1}, Crew: &Crew{Fleet: fleet.Open(b), Self: fleet.Machine{ID: "m1"}}}, troubles: map[string]time.Time{}}
	c := newCrew(p)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	call := &fleet.Call{ID: fleet.NewCallID(), Run: "r1", Purpose: "tasks/a", Work: "a", Need: fleet.Need{Pool: fleet.AgentPool, Agent: "none"}}
	type end struct {
		at  placement
		err error
	}
	ended := make(chan end, 1)
	b.after = func(kind string) {
		if kind != "call" || c.withPurpose(call.Purpose) != nil {
			return
		}
		if err := c.Fleet.Offer(ctx, call); err != nil {
			t.Error(err)
		}
		go func() {
			at, err := c.await(ctx, wantedCall{need: call.Need}, call)
			ended <- end{at, err}
		}()
		for c.withPurpose(call.Purpose) == nil { // until it waits
			time.Sleep(time.Millisecond)
		}
	}
	if err := c.look(ctx); err != nil {
		t.Fatal(err)
	}
	b.after = func(string) {}
	if c.withPurpose(call.Purpose) == nil {
		t.Error("a call that was offered while the list was read is forgotten")
	}
	next := *call
	next.State, next.Result = fleet.Done, "commit"
	body, err := json.Marshal(next)
	if err != nil {
		t.Fatal(err)
	}
	b.mu.Lock()
	post := b.posts["call/"+call.ID]
	post.Body, b.last = body, b.last+1
	post.Version = b.last
	b.posts["call/"+call.ID] = post
	b.mu.Unlock()
	if err := c.look(ctx); err != nil {
		t.Fatal(err)
	}
	if e := <-ended; e.err != nil || e.at.call == nil || e.at.call.Result != "commit" {
		t.Errorf("the call ended with %+v, %v", e.at, e.err)
	}
	// A call that this process removed while the list was read does not come back.
	b.after = func(kind string) {
		if kind == "call" {
			c.drop(ctx, call)
		}
	}
	dir := t.TempDir()
	gittest.Run(t, dir, "init", "-q")
	if c.Crew.Parcels, err = parcel.Open(ctx, dir, t.TempDir(), os.Environ()); err != nil {
		t.Fatal(err)
	}
	c.Crew.Remote = dir
	if err := c.look(ctx); err != nil {
		t.Fatal(err)
	}
	if found := c.withPurpose(call.Purpose); found != nil {
		t.Errorf("a removed call is found again: %+v", found)
	}
	c.running.Wait()
}

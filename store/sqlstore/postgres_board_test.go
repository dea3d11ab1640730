//go:build !nopostgres

package sqlstore

import (
	"sync"
	"testing"
	"time"

	"lockkeeper/store"
)

// Of several machines that replace one version of a post, one succeeds. A version never comes back,
// also not after the post was removed.
func TestBoard(t *testing.T) {
	at := postgresSite(t)
	first, second := at.postgres(t, Options{}), at.postgres(t, Options{})
	ctx := t.Context()
	put := func(b store.Board, p store.Post) uint64 {
		t.Helper()
		v, err := b.Put(ctx, p)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	// A View leaves its transaction open for a moment. A post must not become part of it.
	for _, st := range []store.Store{first, second} {
		if err := st.View(ctx, func(r store.Reader) error { _, err := r.Workers(); return err }); err != nil {
			t.Fatal(err)
		}
	}
	p := store.Post{Kind: "call", Key: "a", Body: []byte(`{"n":1}`), TTL: time.Hour}
	version := put(first, p)
	if version == 0 || put(second, p) != 0 {
		t.Fatal("a missing post was stored twice, or not at all")
	}
	var won sync.Map
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			next := store.Post{Kind: "call", Key: "a", Version: version, Body: []byte(`{"n":2}`), TTL: -time.Second}
			if v, err := []store.Board{first, second}[i%2].Put(ctx, next); err != nil {
				t.Error(err)
			} else if v != 0 {
				won.Store(v, true)
			}
		})
	}
	all.Wait()
	winners := 0
	won.Range(func(any, any) bool { winners++; return true })
	if winners != 1 {
		t.Errorf("%d machines replaced the same version", winners)
	}
	put(first, store.Post{Kind: "call", Key: "b", Body: []byte(`{}`)})
	put(first, store.Post{Kind: "run", Key: "a", Body: []byte(`{}`)})
	list, err := second.Posts(ctx, "call")
	if err != nil || len(list) != 2 || list[0].Key != "a" || string(list[0].Body) != `{"n":2}` || list[0].Left >= 0 || list[1].Left != 0 || list[1].At.IsZero() {
		t.Fatalf("posts %+v, %v", list, err)
	}
	if ok, err := first.Drop(ctx, "call", "a", version); ok || err != nil {
		t.Errorf("an old version was removed: %v", err)
	}
	if ok, err := first.Drop(ctx, "call", "a", list[0].Version); !ok || err != nil {
		t.Errorf("not removed: %v", err)
	}
	if again := put(second, p); again <= list[0].Version {
		t.Errorf("version %d came after %d", again, list[0].Version)
	}
	if put(first, store.Post{Kind: "call", Key: "a", Version: version, Body: []byte(`{}`)}) != 0 {
		t.Error("a version of a removed post was replaced")
	}
}

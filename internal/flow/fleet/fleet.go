package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"lockkeeper"
	"lockkeeper/store"
)

// Kinds of posts.
const (
	machineKind = "machine"
	callKind    = "call"
	runKind     = "run"
)

// Lease is how long a machine, and its claim of a call, stay valid after they were renewed. Renew
// says how often to renew them.
const (
	Lease = 20 * time.Second
	Renew = Lease / 5
)

// A Fleet is the machines and calls of one space.
type Fleet struct {
	board store.Board
}

// Open returns the fleet of a store. It returns nil if the store serves one machine only.
func Open(s store.Store) *Fleet {
	board, ok := s.(store.Board)
	if !ok {
		return nil
	}
	return &Fleet{board: board}
}

// put replaces a post, or creates it if the version is 0. It returns 0 if another process was
// faster.
func (f *Fleet) put(ctx context.Context, kind, key string, version uint64, ttl time.Duration, v any) (uint64, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return 0, err
	}
	return f.board.Put(ctx, store.Post{Kind: kind, Key: key, Version: version, TTL: ttl, Body: body})
}

// read decodes the posts of a kind.
func read[T any](ctx context.Context, f *Fleet, kind string, each func(p store.Post, v T)) error {
	posts, err := f.board.Posts(ctx, kind)
	for _, p := range posts {
		var v T
		if err := json.Unmarshal(p.Body, &v); err != nil {
			return fmt.Errorf("read %s %s: %w", kind, p.Key, err)
		}
		each(p, v)
	}
	return err
}

// errLost reports that another process replaced a post.
func errLost(what, next string) error {
	return &lockkeeper.NotHeldError{Reason: what, Next: next}
}

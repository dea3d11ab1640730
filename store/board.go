package store

import (
	"context"
	"time"
)

// A Board is an optional ability of a Store that several machines share: posts that any of them
// reads and replaces. Each method is one statement, holds no lock of the space between two round
// trips, and needs no transaction.
type Board interface {
	// Posts lists the posts of a kind by key.
	Posts(ctx context.Context, kind string) ([]Post, error)
	// Put stores a post if the stored one has its version, and returns the new version. The version
	// 0 stands for a missing post. If another version is stored, Put returns 0. No two posts of a
	// database ever have the same version.
	Put(ctx context.Context, p Post) (version uint64, err error)
	// Drop removes a post if it has this version, and reports whether it did.
	Drop(ctx context.Context, kind, key string, version uint64) (bool, error)
}

// A Post is one value on a Board.
type Post struct {
	Kind, Key string
	Version   uint64
	Body      []byte        // JSON
	TTL       time.Duration // for Put: how long the post is valid; 0: without end
	Left      time.Duration // how long it is still valid by the server's clock; negative: it no longer is; for a post without end 0
	At        time.Time     // when it was stored, by the server's clock
}

//go:build unix

package workspace

import (
	"sync"
	"time"
)

// Sums remembers the hashes of files of a shared tree, so that of many workspaces
// only the first has to read what it copies: where the disk clones, nothing is read
// at all. A nil *Sums remembers nothing.
//
// A file is remembered by its stat, and only after it has rested for a minute: so
// no write can have met the same tick of the disk's clock, and one through mapped
// memory, which is dated when it is written back, would have shown.
type Sums struct {
	rest time.Duration

	mu    sync.RWMutex
	known map[place]rested
}

type place struct{ dev, inode uint64 }

// rested is a file that has not changed for a while.
type rested struct {
	size, modified, changed int64
	sum                     [32]byte
}

// NewSums is for one process, and for any number of trees and workspaces.
func NewSums() *Sums { return &Sums{rest: time.Minute, known: map[place]rested{}} }

// maxSums bounds what is remembered, which takes about 100 MB.
const maxSums = 1_000_000

// find is the hash of a file that looks as it did when it was read.
func (s *Sums) find(seen look) (sum [32]byte, known bool) {
	if s == nil {
		return sum, false
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	r, ok := s.known[place{seen.dev, seen.inode}]
	return r.sum, ok && r.size == seen.size && r.modified == seen.modified && r.changed == seen.changed
}

// remember notes the hash of a file that was seen, and has not changed since.
func (s *Sums) remember(seen look, at time.Time, sum [32]byte) {
	if s == nil || at.Sub(time.Unix(0, seen.changed)) < s.rest {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= maxSums {
		clear(s.known) // those of files that are gone, most of all
	}
	s.known[place{seen.dev, seen.inode}] = rested{seen.size, seen.modified, seen.changed, sum}
}

package workspace

import (
	"sync"
	"time"
)

// Sums caches the hashes of files of a shared tree, so that only the first of many
// workspaces reads the files that it copies. A nil *Sums caches nothing.
//
// A file is identified by its stat, and cached only if it has not changed for a minute. So no
// write can have the same time on the disk's clock, and a write through mapped memory, which
// is dated when it is written back, is visible.
type Sums struct {
	rest time.Duration

	mu    sync.RWMutex
	known map[fileID]rested
}

type fileID struct{ dev, inode uint64 }

// A rested is a file that has not changed for a while.
type rested struct {
	size, modified, changed int64
	sum                     [32]byte
}

// NewSums returns an empty cache for any number of trees and workspaces.
func NewSums() *Sums { return &Sums{rest: time.Minute, known: map[fileID]rested{}} }

// maxSums bounds the cache to about 100 MB.
const maxSums = 1_000_000

// find returns the hash of a file whose stat has not changed since it was read.
func (s *Sums) find(seen fileStat) (sum [32]byte, known bool) {
	if s == nil {
		return sum, false
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	r, ok := s.known[fileID{seen.dev, seen.inode}]
	return r.sum, ok && r.size == seen.size && r.modified == seen.modified && r.changed == seen.changed
}

// remember caches the hash of a file that has not changed since it was seen.
func (s *Sums) remember(seen fileStat, at time.Time, sum [32]byte) {
	if s == nil || at.Sub(time.Unix(0, seen.changed)) < s.rest {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= maxSums {
		clear(s.known) // most entries are of files that no longer exist
	}
	s.known[fileID{seen.dev, seen.inode}] = rested{seen.size, seen.modified, seen.changed, sum}
}

package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lockkeeper"
)

// order is the canonical order of lease files by name, shared with the foreign tools.
// Other lease files follow, sorted by path.
var order = []string{"tidy", "queue", "runs", "archive", "docs"}

func rank(path string) int {
	if n := slices.Index(order, strings.TrimSuffix(filepath.Base(path), suffix)); n >= 0 {
		return n
	}
	return len(order)
}

// compare returns a negative number if a must be acquired before b.
func compare(a, b string) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a, b)) }

// Sort sorts paths of lease files into the order in which they must be acquired.
func Sort(paths []string) { slices.SortFunc(paths, compare) }

// A Stack is the lease files of one holder, in the order in which they were acquired. It
// is not safe for concurrent use.
type Stack struct {
	// Inherited lists paths of lease files that the process which started this one holds
	// for it.
	Inherited []string

	held []*Lease
}

// Acquire acquires one more lease file. It refuses a file that is already held or comes
// before a held one in the order: two such holders could wait for each other forever.
func (s *Stack) Acquire(ctx context.Context, l *Lease, timeout time.Duration) error {
	for _, path := range s.Paths() {
		if compare(path, l.Path()) < 0 {
			continue
		}
		refused := &lockkeeper.RefusedError{Act: "lease file " + l.Path(), Next: "acquire all lease files in that order, or release the later one first",
			Reason: fmt.Sprintf("%s is already held and comes after it in the order %s, then others by path", path, strings.Join(order, ", "))}
		if path == l.Path() {
			refused.Reason, refused.Next = "it is already held for this work, so waiting for it would never end", "use the held one, or renew it"
		}
		return refused
	}
	if err := l.Acquire(ctx, timeout); err != nil {
		return err
	}
	s.held = append(s.held, l)
	return nil
}

// Paths returns the paths of the held lease files, inherited ones first.
func (s *Stack) Paths() []string {
	paths := slices.Clone(s.Inherited)
	for _, l := range s.held {
		paths = append(paths, l.Path())
	}
	return paths
}

// Release releases the lease file that was acquired last.
func (s *Stack) Release(ctx context.Context) error {
	if len(s.held) == 0 {
		return nil
	}
	last := len(s.held) - 1
	l := s.held[last]
	s.held = s.held[:last]
	_, err := l.Release(ctx)
	return err
}

// Close releases all lease files, the last one first.
func (s *Stack) Close(ctx context.Context) error {
	var errs []error
	for len(s.held) > 0 {
		errs = append(errs, s.Release(ctx))
	}
	return errors.Join(errs...)
}

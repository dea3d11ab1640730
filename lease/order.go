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

// order is the canonical order of leases by name, as the tools that share the files have
// it. Other leases come after these, by path.
var order = []string{"tidy", "queue", "runs", "archive", "docs"}

// rank is a lease's place in the order.
func rank(path string) int {
	if n := slices.Index(order, strings.TrimSuffix(filepath.Base(path), suffix)); n >= 0 {
		return n
	}
	return len(order)
}

// compare is negative when a lease must be taken before another one.
func compare(a, b string) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a, b)) }

// Sort puts paths of leases into the order in which they are taken.
func Sort(paths []string) { slices.SortFunc(paths, compare) }

// Stack is the leases that one holder has, in the order in which they were taken. It
// is for one goroutine.
type Stack struct {
	// Under lists paths of leases that this holder works under without owning them:
	// they were taken by whoever started it.
	Under []string

	held []*Lease
}

// Acquire takes one more lease. It refuses one that comes before, or is, a lease that
// is held already: two holders who did that could wait for each other for ever.
func (s *Stack) Acquire(ctx context.Context, l *Lease, timeout time.Duration) error {
	for _, path := range s.Paths() {
		if compare(path, l.Path()) < 0 {
			continue
		}
		refused := &lockkeeper.RefusedError{Act: "lease " + l.Path(), Next: "take all leases in that order, or release the later one first",
			Reason: fmt.Sprintf("%s is held already, and comes after it in the order %s, then others by path", path, strings.Join(order, ", "))}
		if path == l.Path() {
			refused.Reason, refused.Next = "it is held already for this very work, and waiting for it would never end", "work under it, or renew it"
		}
		return refused
	}
	if err := l.Acquire(ctx, timeout); err != nil {
		return err
	}
	s.held = append(s.held, l)
	return nil
}

// Paths lists what is held, in the order in which it was taken.
func (s *Stack) Paths() []string {
	paths := slices.Clone(s.Under)
	for _, l := range s.held {
		paths = append(paths, l.Path())
	}
	return paths
}

// Release gives the lease back that was taken last.
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

// Close gives all leases back, the last first.
func (s *Stack) Close(ctx context.Context) error {
	var errs []error
	for len(s.held) > 0 {
		errs = append(errs, s.Release(ctx))
	}
	return errors.Join(errs...)
}

package gate

import (
	"context"

	"lockkeeper"
)

// Seen is what the author of a change saw of the tree: everything that was landed up to
// a number, in the places that the change depends on.
type Seen struct {
	Seq   uint64
	Reads []lockkeeper.Target
}

// CommitSeen is Commit for a change that was tested against what its author saw. When
// somebody else has landed a change there since, it is a *lockkeeper.MovedError: the
// question is asked in the transaction that decides, so nothing slips in between.
// The author of tested work has it stored: unlike Commit, it keeps only what is
// refused because of a path.
func (g *Gate) CommitSeen(ctx context.Context, grant *lockkeeper.Grant, changes []Change, seen Seen) (*lockkeeper.Landing, error) {
	c := g.newCommit(grant)
	c.seen, c.keepWith = seen, c.refused
	l, err := c.run(ctx, changes)
	if err != nil {
		return nil, c.refused(ctx, err)
	}
	return l, nil
}

// seenPage is how many landings one look reads.
const seenPage = 200

// unmoved refuses when a landing of another grant has changed one of the places since.
func (s Seen) unmoved(r lockkeeper.Reader, grantID string) error {
	if len(s.Reads) == 0 {
		return nil
	}
	for after := s.Seq; ; {
		page, err := r.Landings(lockkeeper.LandingQuery{After: after, Limit: seenPage})
		if err != nil {
			return err
		}
		for _, l := range page {
			after = l.Seq
			if path, moved := s.movedBy(l); moved && l.State != lockkeeper.Undone && (grantID == "" || l.GrantID != grantID) {
				return &lockkeeper.MovedError{Path: path, Landing: l.Seq, Holder: l.Holder, At: l.At}
			}
		}
		if len(page) < seenPage {
			return nil
		}
	}
}

func (s Seen) movedBy(l *lockkeeper.Landing) (path string, moved bool) {
	for _, change := range l.Changes {
		at := lockkeeper.Target{Path: change.Path, Kind: lockkeeper.File}
		for _, read := range s.Reads {
			if read.Overlaps(at) {
				return change.Path, true
			}
		}
	}
	return "", false
}

package store

import (
	"slices"

	"lockkeeper"
)

// LandingReader reads the landings of a space.
type LandingReader interface {
	// Landings returns the landings that a query selects, as copies of the caller's own.
	Landings(LandingQuery) ([]*lockkeeper.Landing, error)
	// Landed returns, for each path that a landing changed, the newest landing that was not
	// rolled back, and the version that it left. With a grant, only its landings count.
	Landed(grantID string, paths ...string) (map[string]LandedVersion, error)
}

// LandingTx changes the landings of a space.
type LandingTx interface {
	// InsertLanding adds a landing; its number must be new.
	InsertLanding(*lockkeeper.Landing) error
	// TakeLanding gives a decided landing another taker.
	TakeLanding(TakenLanding) error
	// EndLanding ends a decided landing. It does nothing if the landing has ended or
	// has another taker.
	EndLanding(TakenLanding, lockkeeper.LandingState) error
}

// LandingQuery selects landings, each with all its changes. An empty field selects
// any.
type LandingQuery struct {
	Seq     uint64 // the landing with this number
	Commit  string // the landing with this commit
	GrantID string // landings under this grant
	Path    string // landings that changed this path
	Open    bool   // landings that are decided and neither committed nor undone
	After   uint64 // landings with a larger number
	Before  uint64 // landings with a smaller number; 0: no bound
	Limit   int    // maximum number of landings
	Latest  bool   // newest first instead of oldest first
}

// Selects reports whether the query selects a landing.
func (q LandingQuery) Selects(l *lockkeeper.Landing) bool {
	return (q.Seq == 0 || q.Seq == l.Seq) && (q.Commit == "" || q.Commit == l.Commit) &&
		(q.GrantID == "" || q.GrantID == l.GrantID) && (!q.Open || l.State == lockkeeper.Decided) && l.Seq > q.After && (q.Before == 0 || l.Seq < q.Before) &&
		(q.Path == "" || slices.ContainsFunc(l.Changes, func(a lockkeeper.PathChange) bool { return a.Path == q.Path }))
}

// A TakenLanding names a landing and the process that ends it. Only the last taker can end
// a landing: it has fenced every earlier one.
type TakenLanding struct {
	Seq   uint64
	Taker string
}

// A LandedVersion is the version that a landing left at a path.
type LandedVersion struct {
	Seq     uint64 // number of the landing
	Version lockkeeper.Version
}

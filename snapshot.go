package lockkeeper

import "time"

// A GrantSnapshot describes a grant to people and tools. It has no token.
type GrantSnapshot struct {
	ID               string            `json:"id"`
	Holder           string            `json:"holder"`
	ReadPaths        []string          `json:"read_paths"`
	WritePaths       []string          `json:"write_paths"`
	UpgradeablePaths []string          `json:"upgradeable_paths,omitempty"`
	AcquiredAt       time.Time         `json:"acquired_at"`
	ExpiresAt        *time.Time        `json:"expires_at"` // null: never
	HeartbeatAt      time.Time         `json:"heartbeat_at"`
	Released         bool              `json:"released"`
	Fence            uint64            `json:"fence"`
	Policy           string            `json:"policy"`
	Space            string            `json:"space"`
	Age              float64           `json:"age_seconds"`
	Process          *Process          `json:"process,omitempty"`
	Metadata         map[string]string `json:"metadata,omitempty"`
}

// Snapshot returns the description of the grant at the time now.
func (g *Grant) Snapshot(now time.Time) GrantSnapshot {
	s := GrantSnapshot{
		ID: g.ID, Holder: g.Holder, Space: g.Space, Policy: g.Policy, Fence: g.Fence,
		ReadPaths: g.Paths(Read), WritePaths: g.Paths(Write),
		AcquiredAt: g.AcquiredAt.UTC(), HeartbeatAt: g.HeartbeatAt.UTC(),
		Released: g.Released, Process: g.Process, Metadata: g.Metadata,
		Age: max(0, now.Sub(g.AcquiredAt).Seconds()),
	}
	if up := g.Paths(Upgradeable); len(up) > 0 {
		s.UpgradeablePaths = up
	}
	if !g.ExpiresAt.IsZero() {
		s.ExpiresAt = new(g.ExpiresAt.UTC())
	}
	return s
}

// shortID is how many characters of a grant's id tell it from others.
const shortID = 8

// ShortID returns the start of a grant's id, for people. Every command accepts it.
func ShortID(id string) string { return id[:min(len(id), shortID)] }

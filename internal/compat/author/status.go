package author

import (
	"context"
	"slices"
	"time"

	"lockkeeper"
	"lockkeeper/internal/compat/bookfile"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/project"
	"lockkeeper/lock"
)

// A State is the state of a claim, in words for people.
type State string

const (
	Working State = "working"           // active within the last minutes
	Idle    State = "idle (still open)" // inactive, but its process is running or may be
	Gone    State = "gone"              // its process has ended, or it is inactive and nothing is known about its process
)

// A GrantStatus describes a claim, or another grant that conflicts with one, for people.
type GrantStatus struct {
	Grant     string            `json:"grant_id"`
	Resources []string          `json:"resources"` // names of the claimed resources, or the locked paths
	Instance  string            `json:"instance"`
	Who       string            `json:"who,omitempty"` // the person behind the claim
	Mode      lockkeeper.Mode   `json:"mode"`
	Since     time.Time         `json:"timestamp"` // when the claim was made
	Seen      time.Time         `json:"seen"`      // the last activity
	Minutes   int               `json:"age_minutes"`
	State     State             `json:"state"`
	Stale     bool              `json:"stale"` // the claim is inactive for longer than policies.author.ttl
	Foreign   bool              `json:"foreign,omitempty"`
	Reason    string            `json:"reason,omitempty"`
	Process   string            `json:"process_state"` // alive, dead or unknown
	IsClaim   bool              `json:"-"`             // false for another kind of grant
	Locks     []lockkeeper.Lock `json:"-"`

	session string
	command bool           // the claim is held for a command, and released when the command ends
	entry   bookfile.Entry // the entry of a foreign claim
}

// MayOverride reports whether the claim may be overridden without a person's decision,
// because its holder is gone.
func (s GrantStatus) MayOverride() bool { return s.IsClaim && s.State == Gone }

// StatusOf returns the status of a grant, which need not be a claim.
func StatusOf(a *project.Project, e lock.RequestInfo, now time.Time) GrantStatus {
	return statusOf(a.Host, a.Config.Policies()[policyInstance].TTL, e, now)
}

func (au *Author) status(e lock.RequestInfo, now time.Time) GrantStatus {
	return statusOf(au.app.Host, au.staleAfter, e, now)
}

func statusOf(host *process.Host, staleAfter time.Duration, e lock.RequestInfo, now time.Time) GrantStatus {
	s := GrantStatus{Grant: e.ID, Resources: Names(e.Metadata), Instance: e.Holder, Who: e.Metadata[whoKey], Since: e.AcquiredAt, Seen: e.HeartbeatAt,
		Foreign: e.Metadata[foreignKey] != "", Reason: e.Metadata["reason"], Mode: lockkeeper.Read, Locks: e.Targets, session: e.Metadata[sessionKey]}
	if s.IsClaim = s.Resources != nil; !s.IsClaim {
		s.Resources = slices.Concat(e.WritePaths, e.UpgradeablePaths, e.ReadPaths)
	}
	for _, l := range e.Targets {
		s.Mode = max(s.Mode, l.Mode)
	}
	if s.Foreign {
		s.entry = bookfile.Entry{Resource: s.Resources[0], Instance: e.Metadata[instanceKey], Timestamp: e.Metadata[stampKey]}
		if at, ok := s.entry.Time(); ok && at.Before(now) {
			s.Since, s.Seen = at, at
		}
	}
	if s.Seen.Before(s.Since) {
		s.Seen = s.Since
	}
	liveness := lockkeeper.ProcessUnknown
	if e.Process != nil {
		liveness, s.command = host.Liveness(*e.Process), s.session != "" && s.session != sessionOf(*e.Process)
	}
	if s.command && liveness == lockkeeper.ProcessAlive { // the command is running
		s.Seen = now
	}
	s.Process = liveness.String()
	s.Minutes = int(max(0, now.Sub(s.Since)).Minutes())
	s.Stale = now.Sub(s.Seen) >= staleAfter
	s.State = stateOf(liveness, s.Stale, e.Policy)
	return s
}

// stateOf derives the state of a claim. A person's claim is never gone only because it is
// inactive.
func stateOf(liveness lockkeeper.Liveness, quiet bool, policy string) State {
	switch {
	case liveness == lockkeeper.ProcessDead:
		return Gone
	case !quiet:
		return Working
	case liveness == lockkeeper.ProcessAlive || policy == policyPerson:
		return Idle
	}
	return Gone
}

// statuses lists all grants, oldest first.
func (au *Author) statuses(ctx context.Context) ([]GrantStatus, error) {
	entries, err := au.app.Locks.Requests(ctx)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	list := []GrantStatus{}
	for _, e := range entries {
		if e.State != "waiting" {
			list = append(list, au.status(e, now))
		}
	}
	return list, nil
}

// Claims synchronizes the file with the store and lists the claims, oldest first.
func (au *Author) Claims(ctx context.Context) ([]GrantStatus, []Note, error) {
	notes, err := au.sync(ctx, nil)
	list, failed := au.statuses(ctx)
	if failed != nil {
		return nil, notes, failed
	}
	return slices.DeleteFunc(list, func(s GrantStatus) bool { return !s.IsClaim }), notes, err
}

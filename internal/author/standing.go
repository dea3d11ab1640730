package author

import (
	"context"
	"slices"
	"time"

	"lockkeeper"
	"lockkeeper/internal/app"
	"lockkeeper/internal/bookfile"
	"lockkeeper/internal/process"
	"lockkeeper/lock"
)

// State is how a claim stands, in words that a person understands.
type State string

// The states of a claim.
const (
	Working State = "working"           // there was a sign of life within the last minutes
	Idle    State = "idle (still open)" // there was none, and whoever has it is still there, or may be
	Gone    State = "gone"              // its process has ended, or there was no sign and nothing is known of one
)

// Standing is a claim, or another grant that is in the way of one, as people look at
// it.
type Standing struct {
	Grant     string            `json:"grant_id"`
	Resources []string          `json:"resources"` // names, or paths
	Instance  string            `json:"instance"`
	Who       string            `json:"who,omitempty"` // the person
	Mode      lockkeeper.Mode   `json:"mode"`
	Since     time.Time         `json:"timestamp"` // of the claim
	Seen      time.Time         `json:"seen"`      // the last sign of life
	Minutes   int               `json:"age_minutes"`
	State     State             `json:"state"`
	Stale     bool              `json:"stale"` // there was no sign for the time of policies.author.ttl
	Foreign   bool              `json:"foreign,omitempty"`
	Reason    string            `json:"reason,omitempty"`
	Process   string            `json:"process_state"` // alive, dead or unknown
	IsClaim   bool              `json:"-"`             // and no other grant
	Locks     []lockkeeper.Lock `json:"-"`

	session string
	command bool           // it is held for the life of one, and given back with it
	entry   bookfile.Entry // of a foreign one
}

// MayOverride reports whether it can be taken away without a person who looks at it:
// nobody is there any more who could mind.
func (s Standing) MayOverride() bool { return s.IsClaim && s.State == Gone }

// StandingOf is how a grant stands, whether it is a claim or not.
func StandingOf(a *app.App, e lock.Entry, now time.Time) Standing {
	return standing(a.Host, a.Config.Policies()[policyInstance].TTL, e, now)
}

func (au *Author) standing(e lock.Entry, now time.Time) Standing {
	return standing(au.app.Host, au.staleAfter, e, now)
}

func standing(host *process.Host, staleAfter time.Duration, e lock.Entry, now time.Time) Standing {
	s := Standing{Grant: e.ID, Resources: Names(e.Metadata), Instance: e.Holder, Who: e.Metadata[whoKey], Since: e.AcquiredAt, Seen: e.HeartbeatAt,
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
	life := lockkeeper.LifeUnknown
	if e.Process != nil {
		life, s.command = host.Life(*e.Process), s.session != "" && s.session != sessionOf(*e.Process)
	}
	if s.command && life == lockkeeper.LifeAlive { // its command runs
		s.Seen = now
	}
	s.Process = life.String()
	s.Minutes = int(max(0, now.Sub(s.Since)).Minutes())
	s.Stale = now.Sub(s.Seen) >= staleAfter
	s.State = stateOf(life, s.Stale, e.Policy)
	return s
}

// stateOf judges a claim. Of a person's claim nothing follows from silence: they may
// be anywhere.
func stateOf(life lockkeeper.Life, quiet bool, policy string) State {
	switch {
	case life == lockkeeper.LifeDead:
		return Gone
	case !quiet:
		return Working
	case life == lockkeeper.LifeAlive || policy == policyPerson:
		return Idle
	}
	return Gone
}

// standings lists all that is held, oldest first.
func (au *Author) standings(ctx context.Context) ([]Standing, error) {
	entries, err := au.app.Locks.Entries(ctx)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	list := []Standing{}
	for _, e := range entries {
		if e.State != "waiting" {
			list = append(list, au.standing(e, now))
		}
	}
	return list, nil
}

// Claims brings the file and the store to agree, and lists the claims, oldest first.
func (au *Author) Claims(ctx context.Context) ([]Standing, []Note, error) {
	notes, err := au.sync(ctx, nil)
	list, failed := au.standings(ctx)
	if failed != nil {
		return nil, notes, failed
	}
	return slices.DeleteFunc(list, func(s Standing) bool { return !s.IsClaim }), notes, err
}

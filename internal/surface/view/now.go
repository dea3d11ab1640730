package view

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/lock"
	"lockkeeper/store"
)

// Now is the landing page: what needs attention, what is stuck, what changed.
type Now struct {
	Moment
	Run         RunLine       `json:"run"`
	Needs       Needs         `json:"needs_you"`
	Stuck       []Stuck       `json:"stuck"` // longest first
	Failed      []run.Failure `json:"failed"`
	Changes     Changes       `json:"changes"`
	Cost        Cost          `json:"cost"`
	Slots       []Slots       `json:"slots"` // slots of agents, tests and API calls
	Queued      int           `json:"queued"`
	Blocked     int           `json:"blocked"` // how many queued items are blocked
	Enforcement Enforcement   `json:"enforcement"`
	Problems    []string      `json:"problems"` // what could not be read

	Cockpit
}

type RunLine struct {
	State     RunState  `json:"state"`
	ID        string    `json:"id,omitempty"`
	Flow      string    `json:"flow,omitempty"`
	Plan      string    `json:"plan,omitempty"` // plan file of the tasks flow
	Began     time.Time `json:"began,omitzero"`
	Ended     time.Time `json:"ended,omitzero"`
	Conductor string    `json:"conductor,omitempty"` // holder that runs the flow now
	Units     int       `json:"units"`               // number of units, or in the flow tasks of tasks
	Complete  int       `json:"complete"`
	Failed    int       `json:"failed"`
	Excluded  int       `json:"excluded"`           // units or tasks that people excluded
	Error     string    `json:"error,omitempty"`    // why conducting the run ended early
	Baseline  string    `json:"baseline,omitempty"` // the tests that failed on the tree with which the run started
	Next      string    `json:"next,omitempty"`     // command that resumes the run
}

type RunState string

// The states of a run.
const (
	RunNone        RunState = "none"        // there was no run
	RunDiscovering RunState = "discovering" // the run has just started
	RunActive      RunState = "active"      // a process runs the flow
	RunWaiting     RunState = "waiting"     // every remaining step needs a decision
	RunStopped     RunState = "stopped"     // no process conducts the run: every remaining step needs a decision or a retry
	RunInterrupted RunState = "interrupted" // work is left, and no process conducts the run
	RunEnded       RunState = "ended"
)

// Needs counts the open decisions.
type Needs struct {
	Total  int         `json:"total"`
	Kinds  []NeedsKind `json:"kinds"` // kinds with open decisions, in the order in which a unit reaches them
	Oldest time.Time   `json:"oldest,omitzero"`
}

// NeedsKind counts the open decisions of one kind.
type NeedsKind struct {
	Kind  progress.Kind `json:"kind"`
	Count int           `json:"count"`
	First progress.Ref  `json:"first"` // first decision to answer
}

// Stuck is work, a grant or a landing that makes no progress.
type Stuck struct {
	Kind    StuckKind `json:"kind"`
	Name    string    `json:"name"` // name of the work, or the holder
	Item    string    `json:"item,omitempty"`
	GrantID string    `json:"grant_id,omitempty"`
	Phase   string    `json:"phase,omitempty"`
	Since   time.Time `json:"since"`
	Behind  []Blocker `json:"behind"` // holders and requests that block the item
	Acts    []Act     `json:"acts"`
}

// StuckKind is the reason why something is stuck.
type StuckKind string

// Reasons why something is stuck.
const (
	StuckBlocked   StuckKind = "blocked"    // blocked by locks for a long time
	StuckSilent    StuckKind = "silent"     // an agent without output
	StuckLost      StuckKind = "lost"       // the worker of the item is gone
	StuckStale     StuckKind = "stale"      // a grant past its lease that a person must release
	StuckLanding   StuckKind = "unfinished" // a landing that is neither done nor rolled back, without a process
	StuckUnclaimed StuckKind = "nobody"     // queued, and no worker takes items of its root
)

// Blocker is a holder or an earlier request that blocks another.
type Blocker struct {
	Name    string `json:"name"` // name of the work, or the holder
	Item    string `json:"item,omitempty"`
	GrantID string `json:"grant_id"`
	Path    string `json:"path"`
	Waits   bool   `json:"waits"` // the blocker does not hold the lock, but requested it earlier
}

// Act is an action that a page offers.
type Act struct {
	Name    string `json:"name"`              // retry, cancel, undo, …
	Target  string `json:"target"`            // the item, grant, landing or entry
	Command string `json:"command"`           // the command that does the same
	Refused string `json:"refused,omitempty"` // why the act is not possible now
	Was     string `json:"was,omitempty"`     // status of the item when the act was offered
	Note    bool   `json:"note,omitempty"`    // the act takes a note
}

// Changes counts and lists the notable events since a person's last visit.
type Changes struct {
	After     uint64    `json:"after"` // the last event of the person's last visit
	Since     time.Time `json:"since,omitzero"`
	Forgotten bool      `json:"forgotten"` // the log no longer has that event
	Cut       bool      `json:"cut"`       // too many events to count
	Counts    []Count   `json:"counts"`    // number of changes of each kind: landed, gaps, recovered, …
	Latest    []Line    `json:"latest"`    // the newest notable events first
}

// Count is the number of events of a kind.
type Count struct {
	What  string `json:"what"` // landed, undone, gap, failed, recovered, forced, refused, escalated, decided or epoch
	Count int    `json:"count"`
}

// Slots is the use of a slot pool.
type Slots struct {
	Pool  string `json:"pool"`
	Taken int    `json:"taken"`
	Limit int    `json:"limit"`
}

// Enforcement is how agents are kept from writing around the gate.
type Enforcement struct {
	Mode        string       `json:"mode"`              // as configured
	Level       string       `json:"level"`             // the level of protection that this machine provides
	Missing     string       `json:"missing,omitempty"` // why the level is not higher
	Protections []Protection `json:"ways"`              // by way of writing
}

// A Protection says how unlocked writes of one kind of writer are prevented or noticed.
type Protection struct {
	Writer string `json:"writer"` // kind of writer
	Name   string `json:"name"`
	Level  string `json:"level"` // enforced, detected or advisory
	Fact   string `json:"fact"`
	Next   string `json:"next,omitempty"` // how to improve the protection
	Broken bool   `json:"broken"`         // the protection should be enforced, but is not

	OfTools bool `json:"-"` // the protection is about an interactive agent's tools
	Below   bool `json:"-"` // the protection is about sessions that start in a subdirectory
}

// Now returns the landing page for a person whose last visit ended with the event number since; 0:
// this is the first visit.
func (rd *Reader) Now(ctx context.Context, since uint64) (*Now, error) {
	n := &Now{}
	var stale []lock.RequestInfo
	var lease lockkeeper.Instant
	var orphan *lockkeeper.Item
	var waits QueueWaits
	s, p, err := rd.flowState(ctx, "", func(s *snapshot, r store.Reader) (err error) {
		if err := s.addBlocked(r); err != nil {
			return err
		}
		if orphan, err = s.unclaimedIn(r); err != nil {
			return err
		}
		if n.Changes, err = rd.changes.since(r, since); err != nil {
			return err
		}
		if waits, err = countWaits(r); err != nil {
			return err
		}
		lease = r.Now().Lease
		stale, err = rd.project.Locks.StaleIn(r)
		return err
	})
	if err != nil {
		return nil, err
	}
	machines, apart := rd.sharing(ctx, s)
	states, open := p.states(s.items), p.open()
	n.Moment, n.Slots, n.Queued, n.Blocked = s.Moment, s.slots, s.census.Queued(), s.census.Waiting
	n.Run, n.Needs, n.Failed = s.line(states, len(open)), needs(open), p.failures(s.items)
	n.Enforcement = rd.enforcement(ctx)
	n.Problems = problems(p.problem)
	if apart != nil {
		n.Problems = append(n.Problems, "the machines: "+apart.Error())
	}
	if n.Cost, err = rd.cost(s, p, states); err != nil {
		n.Problems = append(n.Problems, "the cost: "+err.Error())
	}
	entries, err := rd.journal.All(s.flow)
	if err != nil {
		n.Problems = append(n.Problems, "calls of agents: "+err.Error())
	}
	silent, err := rd.silent(s, entries)
	if err == nil {
		n.Cockpit, err = rd.cockpit(s, p, states, machines, entries, waits, n.Needs.Total, n.Failed)
	}
	if err != nil {
		n.Problems = append(n.Problems, "the output of agents: "+err.Error())
	}
	landings, err := rd.unfinished(ctx)
	if err != nil {
		n.Problems = append(n.Problems, "unfinished landings: "+err.Error())
	}
	n.Stuck = acts.OrEmpty(slices.Concat(rd.longBlocked(s, lease), silent, s.lost(), staleGrants(stale), landings))
	if orphan != nil {
		n.Stuck = append(n.Stuck, stuckItem(StuckUnclaimed, orphan, orphan.QueuedAt))
	}
	slices.SortStableFunc(n.Stuck, func(a, b Stuck) int { return a.Since.Compare(b.Since) })
	return n, nil
}

// longBlocked lists items blocked by locks for longer than lock_timeout.
func (rd *Reader) longBlocked(s *snapshot, lease lockkeeper.Instant) (list []Stuck) {
	for _, e := range s.blocked {
		if waited := blockedFor(&e.Item, lease, rd.project.Config.LockTimeout); len(e.Locks) > 0 && waited >= rd.project.Config.LockTimeout {
			stuck := stuckItem(StuckBlocked, &e.Item, s.At.Add(-waited))
			stuck.Behind = blockersOf(e)
			list = append(list, stuck)
		}
	}
	return list
}

// silent lists running agents without recent output. With an error the list may be
// incomplete.
func (rd *Reader) silent(s *snapshot, entries []run.CallRecord) (list []Stuck, err error) {
	for _, it := range s.active {
		if it.Stage != lockkeeper.StageRunning || run.FlowOf(it) != s.flow {
			continue
		}
		_, said, unseen := lastOutput(entries, it.ID)
		err = errors.Join(err, unseen)
		if !said.IsZero() && s.At.Sub(said) >= rd.project.Config.Agent.StallAfter {
			list = append(list, stuckItem(StuckSilent, it, said))
		}
	}
	return list, err
}

// lost lists dispatched items whose worker is gone.
func (s *snapshot) lost() (list []Stuck) {
	for _, it := range s.active {
		if alive := slices.ContainsFunc(s.workers, func(w lockkeeper.Worker) bool { return w.ID == it.Worker }); !alive && it.Worker != "" {
			list = append(list, stuckItem(StuckLost, it, it.DispatchedAt))
		}
	}
	return list
}

func stuckItem(kind StuckKind, it *lockkeeper.Item, since time.Time) Stuck {
	return Stuck{Kind: kind, Name: ItemName(it), Item: it.ID, GrantID: it.GrantID, Phase: it.Phase, Since: since, Behind: []Blocker{}, Acts: itemActs(it)}
}

// staleGrants lists grants that a person must release.
func staleGrants(entries []lock.RequestInfo) (list []Stuck) {
	for _, e := range entries {
		since := e.HeartbeatAt
		if e.ExpiresAt != nil {
			since = *e.ExpiresAt
		}
		list = append(list, Stuck{Kind: StuckStale, Name: names{}.holder(e), Item: e.Metadata[lock.ItemKey], GrantID: e.ID, Since: since, Behind: []Blocker{},
			Acts: []Act{{Name: "force-release", Target: e.ID, Command: "lockkeeper lock force-release " + e.ID}}})
	}
	return list
}

// unfinished lists landings that a recovery must end, or that wait for a missing
// directory.
func (rd *Reader) unfinished(ctx context.Context) (list []Stuck, err error) {
	open, err := rd.project.Unfinished(ctx)
	for _, u := range open {
		seq := strconv.FormatUint(u.Seq, 10)
		list = append(list, Stuck{Kind: StuckLanding, Name: "landing " + seq + " of " + u.Holder, GrantID: u.GrantID, Since: u.At,
			Behind: []Blocker{}, Acts: []Act{{Name: "recover", Target: seq, Command: "lockkeeper gate recover"}}})
	}
	return list, err
}

package view

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/compat/author"
	"lockkeeper/internal/project"
	"lockkeeper/lock"
	"lockkeeper/store"
)

// Locks is every holder and waiting request, and the last writer of each path.
type Locks struct {
	Moment
	Held      []LockStatus `json:"held"`
	Stale     []LockStatus `json:"stale"`     // held after the lease ended
	Waiting   []LockStatus `json:"waiting"`   // in ticket order
	Queued    []QueuedWait `json:"queued"`    // items that wait for locks
	Tree      []WaitNode   `json:"tree"`      // the roots wait for nothing
	Graph     Graph        `json:"graph"`     // the same waits, as a graph
	Writers   []Writer     `json:"writers"`   // last writer of held or recently written paths
	Resources []Resource   `json:"resources"` // named resources that are locked
	More      int          `json:"more"`      // grants that are not listed
}

// A Holding is one grant or waiting request, with the state of its process.
type Holding struct {
	lock.RequestInfo
	Liveness string `json:"process_state,omitempty"` // alive, dead or unknown
	Gone     bool   `json:"gone,omitempty"`          // the next request for the paths of the grant frees it
}

// Holding adds the state of its process to a grant or waiting request.
func (rd *Reader) Holding(e lock.RequestInfo) Holding {
	return Holding{RequestInfo: e, Liveness: rd.liveness(e.Process), Gone: e.Free}
}

// LockStatus is a Holding, with the name of its work and the acts that a person can perform on it.
type LockStatus struct {
	Holding
	Locks      []PathLock             `json:"locks"`              // strongest first
	Internal   bool                   `json:"internal,omitempty"` // every lock is internal: of documents, .lockkeeper or .git
	Name       string                 `json:"name"`               // name of the work that the grant is for, or the holder
	Item       string                 `json:"item,omitempty"`
	Reason     string                 `json:"reason,omitempty"`
	Conditions []lockkeeper.Condition `json:"conditions,omitempty"` // for a stale grant: what must hold before a person can release it
	Acts       []Act                  `json:"acts"`
}

type PathLock struct {
	Path     string          `json:"path"`
	Mode     lockkeeper.Mode `json:"mode"`
	Internal bool            `json:"internal,omitempty"` // only Lockkeeper itself locks the path
}

// QueuedWait is an item that waits for locks.
type QueuedWait struct {
	Item      string    `json:"item"`
	Name      string    `json:"name"`
	Phase     string    `json:"phase"`
	Since     time.Time `json:"since"`
	Escalated bool      `json:"escalated"`
	Behind    []Blocker `json:"behind"`
}

// A WaitNode is a grant, request or item, with the nodes that wait for it.
type WaitNode struct {
	ID     string     `json:"id"` // id of the grant or item
	Name   string     `json:"name"`
	State  string     `json:"state"`          // held, stale, waiting or queued
	Path   string     `json:"path,omitempty"` // path for which the request waits
	Since  time.Time  `json:"since"`
	Again  bool       `json:"again,omitempty"` // the node waits for several others, and was already listed in full below one of them
	Behind []WaitNode `json:"behind"`
}

type Graph struct {
	Nodes []GraphNode `json:"nodes"`
	Edges []GraphEdge `json:"edges"`
}

// GraphNode is a grant, a request or an item.
type GraphNode struct {
	ID    string    `json:"id"`
	Name  string    `json:"name"`
	State string    `json:"state"` // held, stale, waiting or queued
	Item  string    `json:"item,omitempty"`
	Since time.Time `json:"since"`
}

// GraphEdge is a wait of one node for another.
type GraphEdge struct {
	From string `json:"from"` // the waiting node
	To   string `json:"to"`
	Path string `json:"path"`
}

// Writer is the last writer of a path.
type Writer struct {
	Path    string    `json:"path"`
	Holder  string    `json:"holder"`
	Name    string    `json:"name"` // name of the work, or the holder
	Landing uint64    `json:"landing"`
	At      time.Time `json:"at"`
	Held    string    `json:"held,omitempty"` // grant that holds the write lock
}

// Resource is a locked named resource.
type Resource struct {
	Resource string    `json:"resource"`
	Instance string    `json:"instance"` // the holder
	Mode     string    `json:"mode"`
	Since    time.Time `json:"since"`
	Minutes  int       `json:"age_minutes"`
	Stale    bool      `json:"stale"`
	State    string    `json:"state,omitempty"` // for a claim: working, idle (still open) or gone
	GrantID  string    `json:"grant_id"`
}

// These constants limit the lists of Locks.
const (
	grantsShown  = 500
	writersShown = 200
	landingsSeen = 100 // the latest landings, whose paths are listed
)

// Locks returns the holders, the waiting requests and the last writers.
func (rd *Reader) Locks(ctx context.Context) (*Locks, error) {
	return share(ctx, &rd.shared, "locks", rd.locks)
}

func (rd *Reader) locks(ctx context.Context) (*Locks, error) {
	v := &Locks{Held: []LockStatus{}, Stale: []LockStatus{}, Waiting: []LockStatus{}, Resources: []Resource{}, Writers: []Writer{}}
	var entries []lock.RequestInfo
	known := names{}
	s, err := rd.snapshot(ctx, "", func(s *snapshot, r store.Reader) (err error) {
		known.add(s.active...)
		if err := s.addBlocked(r); err != nil {
			return err
		}
		if entries, err = rd.project.Locks.RequestsIn(r); err != nil {
			return err
		}
		v.Writers, err = writersIn(r, entries, known)
		return err
	})
	if err != nil {
		return nil, err
	}
	v.Moment = s.Moment
	for _, e := range entries {
		named := slices.ContainsFunc(e.Targets, func(t lockkeeper.Lock) bool { return !isFile(t) })
		if named || e.Policy == "author" || author.Names(e.Metadata) != nil {
			v.Resources = append(v.Resources, rd.resourcesOf(e, known, s.Moment)...)
		}
		switch {
		case e.State == waitingState:
			v.Waiting = append(v.Waiting, rd.lockStatus(e, known))
		case e.Stale:
			v.Stale = append(v.Stale, rd.lockStatus(e, known))
		case len(v.Held) < grantsShown:
			v.Held = append(v.Held, rd.lockStatus(e, known))
		default:
			v.More++
		}
	}
	for i := range v.Stale {
		if err := rd.judge(ctx, &v.Stale[i]); err != nil {
			return nil, err
		}
	}
	v.Queued = s.queuedWaits()
	v.Graph = graphOf(entries, v.Queued, known)
	v.Tree = v.Graph.tree()
	return v, nil
}

const waitingState = "waiting"

func (rd *Reader) lockStatus(e lock.RequestInfo, known names) LockStatus {
	s := LockStatus{Holding: rd.Holding(e), Locks: PathLocks(e), Name: known.holder(e), Item: e.Metadata[lock.ItemKey], Reason: e.Metadata["reason"], Acts: []Act{}}
	internal := rd.internalPaths()
	s.Internal = len(s.Locks) > 0
	for i, l := range s.Locks {
		s.Locks[i].Internal = internal.has(l.Path)
		s.Internal = s.Internal && s.Locks[i].Internal
	}
	if e.State != waitingState {
		s.Acts = append(s.Acts, Act{Name: "force-release", Target: e.ID, Command: "lockkeeper lock force-release " + e.ID})
	}
	return s
}

// holder returns the name of the work that a grant or request is for, or its holder.
func (n names) holder(e lock.RequestInfo) string {
	return cmp.Or(e.Metadata["workflow"], n.of(e.Holder, e.Metadata[lock.ItemKey]))
}

// PathLocks returns the locks of a grant or waiting request, strongest first.
func PathLocks(e lock.RequestInfo) []PathLock {
	list := []PathLock{}
	for _, of := range []struct {
		mode  lockkeeper.Mode
		paths []string
	}{{lockkeeper.Write, e.WritePaths}, {lockkeeper.Upgradeable, e.UpgradeablePaths}, {lockkeeper.Read, e.ReadPaths}} {
		for _, path := range of.paths {
			list = append(list, PathLock{Path: path, Mode: of.mode})
		}
	}
	return list
}

// liveness returns whether a process is alive, as text.
func (rd *Reader) liveness(p *lockkeeper.Process) string {
	if p == nil {
		return ""
	}
	return rd.project.Host.Liveness(*p).String()
}

// judge adds the conditions for a forced release.
func (rd *Reader) judge(ctx context.Context, s *LockStatus) error {
	conditions, refused, err := rd.project.Locks.Conditions(ctx, s.ID)
	s.Conditions = conditions
	if refused {
		for i := range s.Acts {
			s.Acts[i].Refused = "policy " + s.Policy + " releases a grant only when all conditions hold"
		}
	}
	return err
}

func (s *snapshot) queuedWaits() []QueuedWait {
	list := []QueuedWait{}
	for _, e := range s.blocked {
		if len(e.Locks) > 0 {
			list = append(list, QueuedWait{Item: e.Item.ID, Name: ItemName(&e.Item), Phase: e.Item.Phase, Since: e.Item.QueuedAt, Escalated: e.Item.Escalated, Behind: blockersOf(e)})
		}
	}
	return list
}

func isFile(l lockkeeper.Lock) bool { return l.Kind == lockkeeper.File || l.Kind == lockkeeper.Dir }

// resourcesOf returns the named resources of a request. A claim has its original names.
func (rd *Reader) resourcesOf(e lock.RequestInfo, known names, now Moment) (list []Resource) {
	if e.State == waitingState {
		return nil
	}
	if claim := author.StatusOf(rd.project, e, now.At); claim.IsClaim {
		for _, name := range claim.Resources {
			list = append(list, Resource{Resource: name, Instance: claim.Instance, Mode: claim.Mode.String(), Since: claim.Since,
				Minutes: claim.Minutes, Stale: claim.Stale, State: string(claim.State), GrantID: e.ID})
		}
		return list
	}
	for _, t := range e.Targets {
		if isFile(t) && e.Policy != "author" {
			continue
		}
		list = append(list, Resource{Resource: t.Path, Instance: known.holder(e), Mode: t.Mode.String(), Since: e.AcquiredAt,
			Minutes: int(max(0, now.At.Sub(e.AcquiredAt)).Minutes()), Stale: e.Stale, GrantID: e.ID})
	}
	return list
}

// writersIn returns the last writer of each path that is held for writing or landed
// recently.
func writersIn(r store.Reader, entries []lock.RequestInfo, known names) ([]Writer, error) {
	held := map[string]string{} // grant that holds a path, by path
	for _, e := range entries {
		for _, path := range e.WritePaths {
			if e.State != waitingState && len(held) < writersShown && !project.IsOwn(path) {
				held[path] = e.ID
			}
		}
	}
	recent, err := r.Landings(store.LandingQuery{Limit: landingsSeen, Latest: true})
	if err != nil {
		return nil, err
	}
	last := map[string]*lockkeeper.Landing{} // the last landing at each path
	for _, ln := range recent {
		for _, c := range ln.Changes {
			if last[c.Path] == nil && ln.State != lockkeeper.Undone {
				last[c.Path] = ln
			}
		}
	}
	if err := landedBefore(r, held, last); err != nil {
		return nil, err
	}
	list := []Writer{}
	for path, ln := range last {
		if err := known.look(r, ln.Holder); err != nil {
			return nil, err
		}
		list = append(list, Writer{Path: path, Holder: ln.Holder, Name: known.of(ln.Holder, ln.Holder), Landing: ln.Seq, At: ln.At, Held: held[path]})
	}
	slices.SortFunc(list, func(a, b Writer) int {
		if c := b.At.Compare(a.At); c != 0 {
			return c
		}
		return strings.Compare(a.Path, b.Path)
	})
	return list[:min(len(list), writersShown)], nil
}

// landedBefore adds the last writers of held paths that did not land recently.
func landedBefore(r store.Reader, held map[string]string, last map[string]*lockkeeper.Landing) error {
	var paths []string
	for path := range held {
		if last[path] == nil {
			paths = append(paths, path)
		}
	}
	left, err := r.Landed("", paths...)
	if err != nil {
		return err
	}
	landings := map[uint64]*lockkeeper.Landing{}
	for path, at := range left {
		if landings[at.Seq] == nil {
			found, err := r.Landings(store.LandingQuery{Seq: at.Seq, Limit: 1})
			if err != nil {
				return err
			}
			if len(found) == 0 {
				continue
			}
			landings[at.Seq] = found[0]
		}
		last[path] = landings[at.Seq]
	}
	return nil
}

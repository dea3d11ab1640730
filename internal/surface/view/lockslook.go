package view

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/compat/author"
	"lockkeeper/internal/project"
	"lockkeeper/lock"
	"lockkeeper/store"
)

// Bounds of what the page of locks shows.
const (
	grantsShown  = 500
	writersShown = 200
	landingsSeen = 100 // the latest landings, whose paths are shown with who wrote them
)

// Locks says who holds what.
func (l *Look) Locks(ctx context.Context) (*Locks, error) {
	return share(ctx, &l.flights, "locks", l.locks)
}

func (l *Look) locks(ctx context.Context) (*Locks, error) {
	v := &Locks{Held: []Standing{}, Stale: []Standing{}, Waiting: []Standing{}, Resources: []Resource{}, Writers: []Writer{}}
	var entries []lock.RequestInfo
	known := names{}
	s, err := l.scene(ctx, "", func(s *scene, r store.Reader) (err error) {
		known.add(s.active...)
		if err := s.addBlocked(r); err != nil {
			return err
		}
		if entries, err = l.app.Locks.RequestsIn(r); err != nil {
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
		if isResource(e) {
			v.Resources = append(v.Resources, l.resourcesOf(e, known, s.Moment)...)
		}
		switch {
		case e.State == waitingState:
			v.Waiting = append(v.Waiting, l.standing(e, known))
		case e.Stale:
			v.Stale = append(v.Stale, l.standing(e, known))
		case len(v.Held) < grantsShown:
			v.Held = append(v.Held, l.standing(e, known))
		default:
			v.More++
		}
	}
	for i := range v.Stale {
		if err := l.judge(ctx, &v.Stale[i]); err != nil {
			return nil, err
		}
	}
	v.Queued = s.queuedWaits()
	v.Graph = graphOf(entries, v.Queued, known)
	v.Tree = v.Graph.tree()
	return v, nil
}

// waitingState is the state of an entry that stands in line.
const waitingState = "waiting"

// standing is one grant or waiting request, with what is known of whoever has it.
func (l *Look) standing(e lock.RequestInfo, known names) Standing {
	s := Standing{RequestInfo: e, Item: e.Metadata[lock.ItemKey], Reason: e.Metadata["reason"], Life: l.life(e.Process), Acts: []Act{}}
	s.Name = known.holder(e)
	s.Locks = append(s.Locks, locksIn(lockkeeper.Write, e.WritePaths)...)
	s.Locks = append(s.Locks, locksIn(lockkeeper.Upgradeable, e.UpgradeablePaths)...)
	s.Locks = append(s.Locks, locksIn(lockkeeper.Read, e.ReadPaths)...)
	s.Locks = listOf(s.Locks)
	if e.State != waitingState {
		s.Acts = append(s.Acts, Act{Name: "force-release", Target: e.ID, Command: "lockkeeper lock force-release " + e.ID})
	}
	return s
}

// holder is what to call whoever has a grant or asks for one: the work it is for, if it is
// for an item.
func (n names) holder(e lock.RequestInfo) string {
	return cmp.Or(e.Metadata["workflow"], n.of(e.Holder, e.Metadata[lock.ItemKey]))
}

func locksIn(mode lockkeeper.Mode, paths []string) (list []PathLock) {
	for _, path := range paths {
		list = append(list, PathLock{Path: path, Mode: mode})
	}
	return list
}

// life is what is known of a process.
func (l *Look) life(p *lockkeeper.Process) string {
	if p == nil {
		return ""
	}
	return l.app.Host.Liveness(*p).String()
}

// judge says what is checked before a person may free a grant.
func (l *Look) judge(ctx context.Context, s *Standing) error {
	conditions, refused, err := l.app.Locks.Conditions(ctx, s.ID)
	s.Conditions = conditions
	if refused {
		for i := range s.Acts {
			s.Acts[i].Refused = "policy " + s.Policy + " frees a grant only when all conditions hold"
		}
	}
	return err
}

// queuedWaits are the items that locks keep waiting.
func (s *scene) queuedWaits() []QueuedWait {
	list := []QueuedWait{}
	for _, e := range s.blocked {
		if len(e.Locks) > 0 {
			list = append(list, QueuedWait{Item: e.Item.ID, Name: itemName(&e.Item), Phase: e.Item.Phase, Since: e.Item.QueuedAt, Escalated: e.Item.Escalated, Behind: blockersOf(e)})
		}
	}
	return list
}

// isResource reports whether an entry is about named resources, and not about files.
func isResource(e lock.RequestInfo) bool {
	return e.Policy == "author" || author.Names(e.Metadata) != nil || slices.ContainsFunc(e.Targets, func(t lockkeeper.Lock) bool { return !isFile(t) })
}

func isFile(l lockkeeper.Lock) bool { return l.Kind == lockkeeper.File || l.Kind == lockkeeper.Dir }

// resourcesOf are the named resources of an entry: of a claim by the names it was made
// with.
func (l *Look) resourcesOf(e lock.RequestInfo, known names, now Moment) (list []Resource) {
	if e.State == waitingState {
		return nil
	}
	if claim := author.StatusOf(l.app, e, now.At); claim.IsClaim {
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

// writersIn finds who wrote last: what somebody holds for writing, and what landed of
// late.
func writersIn(r store.Reader, entries []lock.RequestInfo, known names) ([]Writer, error) {
	held := map[string]string{} // path to grant
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
	last := map[string]*lockkeeper.Landing{} // by path
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

// landedBefore adds who last wrote what is held and did not land of late.
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

package api

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/compat/resource"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/lock"
)

func lockRoutes() []route {
	grants := api + "/grants"
	return []route{
		ask(grants, lookers, "Grants and waiting requests, the oldest first.", listGrants),
		act(grants, writers, "Acquire locks, all of them or none. With wait_seconds the request waits for them, with wait for 300 seconds.", acquire).withRoom(roomWaits),
		ask(grants+"/{id}", lookers, "One grant or waiting request, with the conflicts that block it.", func(s *Server, c *call, _ nothing) (*lock.RequestInfo, error) { return s.grant(c) }),
		change("renew", "Renew the lease of a grant.", renew),
		change("upgrade", "Upgrade upgradeable locks to write locks.", upgrade),
		change("extend", "Add locks to a grant.", extend),
		act(grants+"/{id}/release", writers, "Release a grant. Releasing an unknown grant changes nothing.", release),
		act(grants+"/{id}/force-release", admins, "Force-release a grant. confirm is the holder's name; reason is recorded.", forceRelease),
		act(api+"/locks/clear", admins, "Force-release all grants that existed at an event. seq is the number of the event, from GET /api/v1/locks; confirm is the word clear. Refused if a grant was acquired since.", clearLocks),
		ask(api+"/check", lookers, "Whether locks would be granted now. Acquires nothing.", check),
	}
}

// longestWait limits how long a request may wait.
const longestWait = 10 * time.Minute

// targets lists paths from the root, by mode.
type targets struct {
	Read        []string `json:"read,omitempty" doc:"A path from the root, to read. Can be repeated."`
	Upgradeable []string `json:"upgradeable,omitempty" doc:"A path from the root, to read now and possibly write later. Can be repeated."`
	Write       []string `json:"write,omitempty" doc:"A path from the root, to write. Can be repeated."`

	ReadNodes        []string `json:"read_nodes,omitempty" doc:"A node, such as project/p1/map/m2, with its files, to read. A slash at the end adds everything below it. Can be repeated."`
	UpgradeableNodes []string `json:"upgradeable_nodes,omitempty" doc:"A node, like one of read_nodes, to read now and possibly write later. Can be repeated."`
	WriteNodes       []string `json:"write_nodes,omitempty" doc:"A node, like one of read_nodes, to write. Can be repeated."`
}

// both returns the targets together with the paths of a lock_request, the form of the source
// documents.
func (t targets) both(r lockkeeper.LockRequest) targets {
	t.Read, t.Write = slices.Concat(t.Read, r.ReadPaths), slices.Concat(t.Write, r.WritePaths)
	return t
}

// locks resolves the paths. One invalid path refuses them all.
func (t targets) locks(a *project.Project) (list []lockkeeper.Lock, err error) {
	if len(t.Read)+len(t.Upgradeable)+len(t.Write) > lockkeeper.MaxTargets {
		return nil, &lockkeeper.InputError{Field: "targets", Reason: "more than " + strconv.Itoa(lockkeeper.MaxTargets), Next: "split the work, or lock a directory for reading"}
	}
	for _, given := range []struct {
		mode         lockkeeper.Mode
		paths, nodes []string
	}{{lockkeeper.Read, t.Read, t.ReadNodes}, {lockkeeper.Upgradeable, t.Upgradeable, t.UpgradeableNodes}, {lockkeeper.Write, t.Write, t.WriteNodes}} {
		of, err := acts.NodeLocks(a, given.mode, given.nodes...)
		if err != nil {
			return nil, err
		}
		list = append(list, of...)
		for _, path := range given.paths {
			l, err := a.Root.Resolve(a.Root.Dir(), path, given.mode)
			if err == nil {
				err = acts.CheckName(a, path)
			}
			if err != nil {
				return nil, err
			}
			list = append(list, l)
		}
	}
	if len(list) == 0 {
		return nil, &lockkeeper.InputError{Field: "targets", Reason: "no path is named", Next: "name at least one path in read, write or upgradeable, or one node"}
	}
	return list, lockkeeper.CheckCount(len(list))
}

// wanted is the body of a request for locks.
type wanted struct {
	targets
	wantedOperation
	Holder string  `json:"holder,omitempty"` // appended to the caller's name, as in ci/otter
	Policy string  `json:"policy,omitempty"`
	TTL    float64 `json:"ttl_seconds,omitempty"`  // 0: the policy's default
	Wait   float64 `json:"wait_seconds,omitempty"` // 0: do not wait
	Waits  bool    `json:"wait,omitempty"`         // wait for the default time
	Reason string  `json:"reason,omitempty"`

	LockRequest lockkeeper.LockRequest `json:"lock_request,omitzero"` // more paths to read and write
}

// wantedOperation names an operation instead of targets.
type wantedOperation struct {
	Operation string   `json:"operation,omitempty" doc:"An operation of lockkeeper.yaml, whose locks are acquired instead of targets."`
	Of        []string `json:"of,omitempty" doc:"The resources that the operation works on: names, and paths of nodes."`
	Objects   int      `json:"objects,omitempty" doc:"How many objects the operation changes."`
}

// locks returns the locks of the operation. One that needs an approval is refused, because there is
// no person to ask.
func (w wantedOperation) locks(a *project.Project) ([]lockkeeper.Lock, error) {
	op, err := acts.FindOperation(a, w.Operation, resource.Args{Of: w.Of, Objects: w.Objects}, nil)
	if err == nil {
		err = op.Unattended()
	}
	return op.Locks, err
}

// given is a new grant with its token, which is returned only once.
type given struct {
	lockkeeper.GrantSnapshot
	Token string `json:"token"`
}

func acquire(s *Server, c *call, in wanted) (given, error) {
	req, wait, err := in.request(s, c)
	if err != nil {
		return given{}, err
	}
	ctx, cancel := context.WithCancelCause(c.r.Context())
	defer cancel(nil)
	defer context.AfterFunc(s.leaving, func() { cancel(errLeaving) })()
	if err := c.control.SetWriteDeadline(time.Now().Add(wait + s.opt.Limits.Write)); err != nil {
		return given{}, err
	}
	g, err := s.opt.App.Hold(ctx, req, wait)
	if err != nil {
		if errors.Is(context.Cause(ctx), errLeaving) {
			return given{}, errLeaving
		}
		return given{}, err
	}
	if err := c.r.Context().Err(); err != nil { // the client has disconnected and would never learn of the grant
		return given{}, errors.Join(err, g.Release(context.WithoutCancel(ctx)))
	}
	return given{g.Snapshot(s.opt.Now()), g.Token}, nil
}

var errLeaving = &refusal{code: codeBusy, reason: "the server is stopping; no lock was acquired", next: "retry when the server runs again", after: 5 * time.Second}

// request builds the lock request. The holder's name includes the caller, so that the record
// shows who asked.
func (in wanted) request(s *Server, c *call) (req lockkeeper.Request, wait time.Duration, err error) {
	switch {
	case in.TTL < 0 || in.TTL > 0 && in.TTL < 1 || in.TTL > 24*60*60:
		return req, 0, &lockkeeper.InputError{Field: "ttl_seconds", Reason: "it must be from 1 to 86400", Next: "leave it out for the default of the policy"}
	case in.Wait < 0 || in.Wait > longestWait.Seconds():
		return req, 0, &lockkeeper.InputError{Field: "wait_seconds", Reason: "it must be from 0 to " + strconv.Itoa(int(longestWait.Seconds())), Next: "repeat the request when the wait is over"}
	}
	req = lockkeeper.Request{Holder: c.who.Name, Policy: in.Policy, TTL: seconds(in.TTL)}
	if in.Holder != "" {
		req.Holder += "/" + in.Holder
	}
	if in.Reason != "" {
		req.Metadata = map[string]string{"reason": in.Reason}
	}
	switch named := in.both(in.LockRequest); {
	case in.Operation == "":
		req.Locks, err = named.locks(s.opt.App)
	case !reflect.DeepEqual(named, targets{}):
		err = &lockkeeper.InputError{Field: "operation", Value: in.Operation, Reason: "it has locks of its own", Next: "send either an operation or targets"}
	default:
		req.Locks, err = in.wantedOperation.locks(s.opt.App)
		req.Policy = cmp.Or(req.Policy, acts.DataPolicy)
		if req.Metadata == nil {
			req.Metadata = map[string]string{}
		}
		req.Metadata["operation"] = in.Operation
	}
	req.Policy = acts.PolicyFor(req.Policy, req.Locks, "")
	if in.Waits && in.Wait == 0 {
		return req, lockkeeper.DefaultWait, err
	}
	return req, seconds(in.Wait), err
}

// seconds converts n to a duration. The caller has checked its range.
func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

type grantPage struct {
	Grants []lock.RequestInfo `json:"grants"`
	Next   string             `json:"next,omitempty"` // the parameter "after" for the next page; empty: this is the last page
}

func listGrants(s *Server, c *call, q struct {
	paged
	After string `json:"after" doc:"The field next of the previous page."`
}) (grantPage, error) {
	entries, err := s.opt.App.Locks.Requests(c.r.Context())
	if err != nil {
		return grantPage{}, err
	}
	slices.SortFunc(entries, func(a, b lock.RequestInfo) int { return strings.Compare(placeOf(a), placeOf(b)) })
	first, found := slices.BinarySearchFunc(entries, q.After, func(e lock.RequestInfo, after string) int { return strings.Compare(placeOf(e), after) })
	if found {
		first++
	}
	limit := *q.Limit
	page := grantPage{Grants: append([]lock.RequestInfo{}, entries[first:min(len(entries), first+limit)]...)}
	if first+limit < len(entries) {
		page.Next = placeOf(page.Grants[limit-1])
	}
	return page, nil
}

// placeOf returns the sort key of a grant in the list. It does not change when other grants come and go.
func placeOf(e lock.RequestInfo) string {
	return e.AcquiredAt.UTC().Format("20060102T150405.000000000") + "-" + e.ID
}

func (s *Server) grant(c *call) (*lock.RequestInfo, error) {
	name := c.r.PathValue("id")
	id, err := s.opt.App.GrantID(c.r.Context(), name)
	var e *lock.RequestInfo
	if err == nil {
		e, err = s.opt.App.Locks.Request(c.r.Context(), id)
	}
	if err == nil && e == nil || lockkeeper.CodeOf(err) == lockkeeper.CodeNotHeld {
		err = &refusal{code: codeNotFound, reason: "grant " + name + " is unknown here: released, expired or never granted", next: "GET " + api + "/grants lists them all"}
	}
	return e, err
}

// ownership is the proof that a caller owns a grant.
type ownership struct {
	Token string `json:"token"`
}

func (o ownership) check() error {
	if o.Token == "" {
		return &lockkeeper.InputError{Field: "token", Reason: "required", Next: "send the token that came with the grant"}
	}
	return nil
}

// change returns the route of an act on a grant. The caller must have its token.
func change[In interface{ check() error }](name, summary string, do func(s *Server, c *call, id string, in In) (lockkeeper.Grant, error)) route {
	return act(api+"/grants/{id}/"+name, writers, summary, func(s *Server, c *call, in In) (changed lockkeeper.GrantSnapshot, err error) {
		id, err := s.opt.App.GrantID(c.r.Context(), c.r.PathValue("id"))
		if err := cmp.Or(err, in.check()); err != nil {
			return changed, err
		}
		g, err := do(s, c, id, in)
		return g.Snapshot(s.opt.Now()), err
	})
}

func renew(s *Server, c *call, id string, in ownership) (lockkeeper.Grant, error) {
	return s.opt.App.Locks.Renew(c.r.Context(), id, in.Token)
}

func upgrade(s *Server, c *call, id string, in struct {
	ownership
	Paths []string `json:"paths,omitempty"`
	Nodes []string `json:"nodes,omitempty"`
}) (g lockkeeper.Grant, err error) {
	locks, err := targets{Upgradeable: in.Paths, UpgradeableNodes: in.Nodes}.locks(s.opt.App)
	if err != nil {
		return g, err
	}
	paths := make([]string, len(locks))
	for i, l := range locks {
		paths[i] = l.Path
	}
	return s.opt.App.Locks.Upgrade(c.r.Context(), id, in.Token, paths...)
}

func extend(s *Server, c *call, id string, in struct {
	ownership
	targets
}) (g lockkeeper.Grant, err error) {
	locks, err := in.locks(s.opt.App)
	if err != nil {
		return g, err
	}
	return s.opt.App.Locks.Extend(c.r.Context(), id, in.Token, locks...)
}

type released struct {
	ID       string `json:"id"`
	Released bool   `json:"released"`
}

func release(s *Server, c *call, in ownership) (released, error) {
	id, err := s.opt.App.ReleasedID(c.r.Context(), c.r.PathValue("id"))
	if err := cmp.Or(in.check(), err); err != nil {
		return released{}, err
	}
	done, err := s.opt.App.Locks.Release(c.r.Context(), id, in.Token) // done is false for an unknown id
	return released{id, done}, err
}

func forceRelease(s *Server, c *call, in struct {
	Reason  string `json:"reason"`
	Confirm string `json:"confirm"` // the holder's name
}) (released, error) {
	e, err := s.grant(c)
	if err != nil {
		return released{}, err
	}
	if in.Confirm != e.Holder {
		return released{}, &lockkeeper.InputError{Field: "confirm", Reason: "not the name of the holder, who would lose these locks and the processes under them", Next: "look at the grant, and send the holder's name"}
	}
	return released{e.ID, true}, acts.ForceRelease(c.r.Context(), s.opt.App, e, in.Confirm, in.Reason, c.who.Actor())
}

// clearedLocks lists the released grants, and the reasons why others were kept.
type clearedLocks struct {
	Freed []string         `json:"freed"` // ids of the released grants
	Kept  []map[string]any `json:"kept"`
}

func clearLocks(s *Server, c *call, in struct {
	Reason  string `json:"reason"`
	Confirm string `json:"confirm"` // must be "clear"
	Seq     uint64 `json:"seq"`     // event number of the state that the person saw
}) (clearedLocks, error) {
	if in.Confirm != "clear" {
		return clearedLocks{}, &lockkeeper.InputError{Field: "confirm", Value: in.Confirm, Reason: "every holder would lose its locks, and the processes under them would be stopped", Next: "send clear as confirm"}
	}
	cleared, err := acts.ClearShown(c.r.Context(), s.opt.App, in.Seq, in.Reason, c.who.Actor())
	if err != nil {
		return clearedLocks{}, err
	}
	kept := []map[string]any{}
	for _, k := range cleared.Kept {
		facts := factsOf(k.Err)
		facts["grant"], facts["holder"] = k.ID, k.Holder
		kept = append(kept, facts)
	}
	return clearedLocks{append([]string{}, cleared.Freed...), kept}, nil
}

// A verdict reports whether locks are free.
type verdict struct {
	Free      bool                      `json:"free"`
	Conflicts []lockkeeper.ConflictInfo `json:"conflicts"`
}

func check(s *Server, c *call, q targets) (verdict, error) {
	locks, err := q.locks(s.opt.App)
	if err != nil {
		return verdict{}, err
	}
	found, err := s.opt.App.Locks.CheckConflicts(c.r.Context(), locks)
	if found == nil {
		found = []lockkeeper.ConflictInfo{}
	}
	return verdict{len(found) == 0, found}, err
}

package author

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/compat/bookfile"
	"lockkeeper/lock"
	"lockkeeper/store"
)

// A Note is something about the locks file that a person should know.
type Note struct {
	Kind     NoteKind          `json:"kind"`
	Entry    bookfile.Entry    `json:"entry,omitzero"`
	Blockers []GrantStatus     `json:"blockers,omitempty"` // for a collision: the conflicting holders
	Corrupt  *bookfile.Corrupt `json:"corrupt,omitempty"`
}

type NoteKind string

const (
	Collision NoteKind = "collision" // a foreign claim conflicts with a grant; the holder keeps it
	Duplicate NoteKind = "duplicate" // several foreign claims on one resource; the newest counts
	Corrupted NoteKind = "corrupted" // the file was malformed
	Unusable  NoteKind = "unusable"  // a foreign claim on something that cannot be locked
)

// A syncPass is one synchronization of file and store under the guard.
type syncPass struct {
	au    *Author
	notes []Note
	drop  map[bookfile.Lock]bool // foreign entries to remove
}

// sync synchronizes the file with the store. It runs the function act once under the same guard,
// after importing foreign claims and before writing the file.
func (au *Author) sync(ctx context.Context, act func(*syncPass) error) ([]Note, error) {
	t := &syncPass{au: au, drop: map[bookfile.Lock]bool{}}
	if au.file == nil {
		if act == nil {
			return nil, nil
		}
		return nil, act(t)
	}
	if act == nil {
		if idle, err := au.isIdle(ctx); idle || err != nil {
			return nil, err
		}
	}
	acted := act == nil
	err := au.file.Update(ctx, func(r bookfile.Reading) ([]bookfile.Entry, error) {
		if r.Corrupt != nil {
			t.notes = append(t.notes, Note{Kind: Corrupted, Corrupt: r.Corrupt})
		}
		if err := t.importForeign(ctx, r); err != nil {
			return nil, err
		}
		if !acted {
			acted = true
			if err := act(t); err != nil {
				return nil, err
			}
		}
		plan, err := t.merge(ctx, r)
		return plan.Entries, err
	})
	return t.notes, err
}

// isIdle reports whether there is neither a file nor a claim. The first claim creates the
// file.
func (au *Author) isIdle(ctx context.Context) (bool, error) {
	if _, err := os.Lstat(au.file.Path()); !errors.Is(err, fs.ErrNotExist) { // an unreadable path counts as a file
		return false, nil
	}
	claims, err := au.mirrored(ctx)
	return len(claims) == 0, err
}

func (t *syncPass) merge(ctx context.Context, r bookfile.Reading) (bookfile.Merged, error) {
	claims, err := t.au.mirrored(ctx)
	read := slices.DeleteFunc(slices.Clone(r.Entries), func(e bookfile.Entry) bool { return t.drop[e.Lock()] })
	return bookfile.Merge(read, r.Known, claims, t.au.mark), err
}

// mirrored returns the claims as they must appear in the file.
func (au *Author) mirrored(ctx context.Context) (claims []bookfile.Claim, err error) {
	now := time.Now()
	err = au.app.Store.View(ctx, func(r store.Reader) error {
		claims = nil
		records, err := au.app.Locks.GrantsIn(r)
		for _, rec := range records {
			names := Names(rec.Metadata)
			switch {
			case names == nil || rec.State == store.StateRevoking:
			case rec.Metadata[foreignKey] == au.site:
				claims = append(claims, bookfile.Claim{ID: rec.ID, Imported: true,
					Entry: bookfile.Entry{Resource: names[0], Timestamp: rec.Metadata[stampKey], Instance: rec.Metadata[instanceKey]}})
			default:
				at := au.lastActivity(rec, now)
				for _, name := range names {
					for _, shown := range au.fileNames(name) {
						l := bookfile.Lock{Resource: shown, Instance: rec.Holder}
						claims = append(claims, bookfile.Claim{ID: rec.ID, Entry: bookfile.Entry{Resource: shown, Instance: rec.Holder, Timestamp: au.mark.Stamp(at, l)}})
					}
				}
			}
		}
		return err
	})
	return claims, err
}

// lastActivity returns the time of a Lockkeeper claim in the file. Foreign tools treat an
// entry of 15 minutes as abandoned, so it stays recent while the process lives. It
// advances in steps to avoid constant writes.
func (au *Author) lastActivity(rec *store.Record, now time.Time) time.Time {
	at := rec.HeartbeatAt
	if rec.Process != nil && au.app.Host.Liveness(*rec.Process) == lockkeeper.ProcessAlive {
		step := au.staleAfter / 3
		if alive := now.Add(-time.Duration(now.UnixNano()) % step); alive.After(at) {
			at = alive
		}
	}
	return at
}

// importForeign makes the store agree with the foreign claims in the file.
func (t *syncPass) importForeign(ctx context.Context, r bookfile.Reading) error {
	plan, err := t.merge(ctx, r)
	if err != nil {
		return err
	}
	for _, e := range plan.Duplicates {
		t.note(Note{Kind: Duplicate, Entry: e})
	}
	if len(plan.New)+len(plan.Renewed)+len(plan.Ended) == 0 {
		return nil
	}
	if plan.New, err = t.dropEnded(ctx, plan.New); err != nil {
		return err
	}
	asked := make([]lockkeeper.Request, len(plan.New)) // built outside the transaction, because building them reads the disk
	for i, e := range plan.New {
		asked[i] = t.au.request(e)
	}
	blockers := map[int][]store.Overlap{}
	var unusable []bookfile.Entry
	err = t.au.app.Locks.Update(ctx, func(act *lock.Tx) error {
		clear(blockers)
		unusable = nil
		for _, c := range plan.Ended {
			gone := lockkeeper.Event{Kind: lockkeeper.EventReleased, Reason: "its entry is no longer in " + t.au.file.Path()}
			if _, err := act.Free(c.ID, gone); err != nil {
				return err
			}
		}
		for _, c := range plan.Renewed {
			if err := t.au.saveRenewed(act, c); err != nil {
				return err
			}
		}
		for i, req := range asked {
			if t.au.app.Locks.Check(req) != nil {
				unusable = append(unusable, plan.New[i])
				continue
			}
			_, found, err := act.Try(req)
			if err == nil && len(found) > 0 {
				blockers[i] = found
				err = t.au.recordDenied(act, req, found)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, e := range unusable {
		t.note(Note{Kind: Unusable, Entry: e})
	}
	return t.noteCollisions(ctx, plan.New, blockers)
}

// dropEnded removes entries of foreign claims that a person released elsewhere, for
// example on the dashboard. A newer entry counts as a new claim.
func (t *syncPass) dropEnded(ctx context.Context, entries []bookfile.Entry) (rest []bookfile.Entry, err error) {
	if len(entries) == 0 {
		return nil, nil
	}
	const looked = 100 // enough to cover the time since the last synchronization
	events, err := t.au.app.Locks.Events(ctx, store.EventQuery{Latest: true, Limit: looked})
	for _, e := range entries {
		req := t.au.request(e)
		at, _ := e.Time()
		ended := slices.ContainsFunc(events, func(ev lockkeeper.Event) bool {
			return ev.Kind == lockkeeper.EventForceReleased && ev.Holder == req.Holder && ev.At.After(at) && slices.Equal(ev.Locks, lockkeeper.Normalize(req.Locks))
		})
		if ended {
			t.drop[e.Lock()] = true
		} else {
			rest = append(rest, e)
		}
	}
	return rest, err
}

// note adds a note unless it was added before.
func (t *syncPass) note(n Note) {
	if !slices.ContainsFunc(t.notes, func(o Note) bool { return o.Kind == n.Kind && o.Entry == n.Entry }) {
		t.notes = append(t.notes, n)
	}
}

func (t *syncPass) noteCollisions(ctx context.Context, entries []bookfile.Entry, blockers map[int][]store.Overlap) error {
	for _, i := range slices.Sorted(maps.Keys(blockers)) {
		n := Note{Kind: Collision, Entry: entries[i]}
		for _, o := range blockers[i] {
			held, err := t.au.app.Locks.Request(ctx, o.Record.ID)
			if err != nil {
				return err
			}
			if held != nil && !slices.ContainsFunc(n.Blockers, func(s GrantStatus) bool { return s.Grant == held.ID }) {
				n.Blockers = append(n.Blockers, t.au.status(*held, time.Now()))
			}
		}
		t.note(n)
	}
	return nil
}

// recordDenied records the refusal of a foreign claim, once for each set of conflicts.
func (au *Author) recordDenied(act *lock.Tx, req lockkeeper.Request, found []store.Overlap) error {
	key, sum := "foreign claim "+au.site+" "+req.Metadata[claimKey]+" "+req.Metadata[instanceKey], lock.Digest(found)
	told, err := act.Denial(key)
	if err != nil || told == sum {
		return err
	}
	if err := act.SetDenial(key, sum); err != nil {
		return err
	}
	_, err = act.Append(lockkeeper.Event{Kind: lockkeeper.EventDenied, Actor: lockkeeper.Actor{Name: req.Holder, Kind: lockkeeper.ActorHolder}, Holder: req.Holder,
		Locks: req.Locks, Conflicts: lock.Conflicts(found), Reason: fmt.Sprintf("a foreign claim on %s in %s conflicts with a grant; the holder keeps it", Names(req.Metadata)[0], au.file.Path())})
	return err
}

// request returns the lock request of a foreign entry. A resource that is not in the table
// becomes a lock of its own that conflicts with nothing else.
func (au *Author) request(e bookfile.Entry) lockkeeper.Request {
	t, err := au.resolve(e.Resource, lockkeeper.Write, au.fromRoot)
	if err != nil {
		t.locks = []lockkeeper.Lock{{Target: lockkeeper.Target{Path: "locks.json/" + e.Resource, Kind: lockkeeper.Node}, Mode: lockkeeper.Write}}
	}
	return lockkeeper.Request{Holder: holderName(e.Instance), Policy: policyInstance, TTL: au.remaining(e), Locks: t.locks,
		Metadata: map[string]string{claimKey: encodeNames([]string{e.Resource}), foreignKey: au.site, instanceKey: e.Instance, stampKey: e.Timestamp}}
}

// holderName returns an instance name as a valid holder name.
func holderName(instance string) string {
	name := strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\uFFFD' {
			return '?'
		}
		return r
	}, instance))
	for len(name) > 200 {
		name = name[:len(name)-1]
		name = strings.ToValidUTF8(name, "")
	}
	return name
}

// remaining returns how long until a foreign claim is stale. An entry without a valid
// time, or with one in the future, counts as new.
func (au *Author) remaining(e bookfile.Entry) time.Duration {
	at, ok := e.Time()
	if age := time.Since(at); ok && age > 0 {
		return max(au.staleAfter-age, time.Nanosecond)
	}
	return au.staleAfter
}

func (au *Author) saveRenewed(act *lock.Tx, c bookfile.Claim) error {
	rec, err := act.Get(c.ID)
	if err != nil || rec == nil {
		return err
	}
	next := *rec
	next.Metadata = maps.Clone(rec.Metadata)
	next.Metadata[stampKey] = c.Timestamp
	next.TTL, next.Heartbeat, next.HeartbeatAt = au.remaining(c.Entry), act.Now().Lease, act.Now().Wall
	next.Expires, next.ExpiresAt = act.Now().Lease.Add(next.TTL), act.Now().Wall.Add(next.TTL)
	return act.Save(&next)
}

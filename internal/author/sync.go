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
	"lockkeeper/internal/bookfile"
	"lockkeeper/lock"
)

// Note is something about the file that a person should know.
type Note struct {
	Kind     NoteKind          `json:"kind"`
	Entry    bookfile.Entry    `json:"entry,omitzero"`
	Blockers []Standing        `json:"blockers,omitempty"` // of a collision: who holds what it names
	Corrupt  *bookfile.Corrupt `json:"corrupt,omitempty"`
}

// NoteKind says what a note is about.
type NoteKind string

// The kinds of note.
const (
	Collision NoteKind = "collision" // a foreign claim on what is held: the holder stays the holder
	Duplicate NoteKind = "duplicate" // several foreign claims on one resource: the newest counts
	Corrupted NoteKind = "corrupted" // the file could not be understood
	Unusable  NoteKind = "unusable"  // a foreign claim on what cannot be locked
)

// turn is one bringing to agreement of file and store, while the guard is held.
type turn struct {
	au    *Author
	notes []Note
	drop  map[bookfile.Lock]bool // foreign entries that are to go
}

// sync brings the file and the store to agree, and does something in the same turn,
// once, after what the file says was taken up and before it is written.
func (au *Author) sync(ctx context.Context, act func(*turn) error) ([]Note, error) {
	t := &turn{au: au, drop: map[bookfile.Lock]bool{}}
	if au.file == nil {
		if act == nil {
			return nil, nil
		}
		return nil, act(t)
	}
	if act == nil {
		if idle, err := au.nothingToShow(ctx); idle || err != nil {
			return nil, err
		}
	}
	acted := act == nil
	err := au.file.Update(ctx, func(r bookfile.Reading) ([]bookfile.Entry, error) {
		if r.Corrupt != nil {
			t.notes = append(t.notes, Note{Kind: Corrupted, Corrupt: r.Corrupt})
		}
		if err := t.takeUp(ctx, r); err != nil {
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

// nothingToShow reports whether there is neither a file nor a claim: it is made by
// the first who claims something.
func (au *Author) nothingToShow(ctx context.Context) (bool, error) {
	if _, err := os.Lstat(au.file.Path()); !errors.Is(err, fs.ErrNotExist) { // also what may not be looked at
		return false, nil
	}
	claims, err := au.mirrored(ctx)
	return len(claims) == 0, err
}

// merge compares the file with the claims as they are now.
func (t *turn) merge(ctx context.Context, r bookfile.Reading) (bookfile.Plan, error) {
	claims, err := t.au.mirrored(ctx)
	read := slices.DeleteFunc(slices.Clone(r.Entries), func(e bookfile.Entry) bool { return t.drop[e.Lock()] })
	return bookfile.Merge(read, r.Known, claims, t.au.mark), err
}

// mirrored are the claims as the file is to show them.
func (au *Author) mirrored(ctx context.Context) (claims []bookfile.Claim, err error) {
	now := time.Now()
	err = au.app.View(ctx, func(r lockkeeper.Reader) error {
		claims = nil
		records, err := au.app.Locks.GrantsIn(r)
		for _, rec := range records {
			names := Names(rec.Metadata)
			switch {
			case names == nil || rec.State == lockkeeper.StateRevoking:
			case rec.Metadata[foreignKey] == au.site:
				claims = append(claims, bookfile.Claim{ID: rec.ID, Imported: true,
					Entry: bookfile.Entry{Resource: names[0], Timestamp: rec.Metadata[stampKey], Instance: rec.Metadata[instanceKey]}})
			default:
				at := au.lastSign(rec, now)
				for _, name := range names {
					for _, shown := range au.shownAs(name) {
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

// lastSign is the time of a claim of ours in the file. Tools take what is 15 minutes
// old for abandoned, so while its process lives it is never so old. It moves in
// steps, so that the file is not written all the time.
func (au *Author) lastSign(rec *lockkeeper.Record, now time.Time) time.Time {
	at := rec.HeartbeatAt
	if rec.Process != nil && au.app.Host.Life(*rec.Process) == lockkeeper.LifeAlive {
		step := au.staleAfter / 3
		if alive := now.Add(-time.Duration(now.UnixNano()) % step); alive.After(at) {
			at = alive
		}
	}
	return at
}

// takeUp makes the store agree with what the file says of foreign claims.
func (t *turn) takeUp(ctx context.Context, r bookfile.Reading) error {
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
	asked := make([]lockkeeper.Request, len(plan.New)) // before the transaction: it asks the disk
	for i, e := range plan.New {
		asked[i] = t.au.request(e)
	}
	met := map[int][]lockkeeper.Overlap{}
	var unusable []bookfile.Entry
	err = t.au.app.Locks.Within(ctx, func(act *lock.Act) error {
		clear(met)
		unusable = nil
		for _, c := range plan.Ended {
			gone := lockkeeper.Event{Kind: lockkeeper.EventReleased, Reason: "its entry is no longer in " + t.au.file.Path()}
			if _, err := act.Free(c.ID, gone); err != nil {
				return err
			}
		}
		for _, c := range plan.Renewed {
			if err := t.au.renewed(act, c); err != nil {
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
				met[i] = found
				err = t.au.record(act, req, found)
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
	return t.collided(ctx, plan.New, met)
}

// dropEnded takes out of the file what a person took away from a foreign tool without
// going through the file, as on the dashboard. One that claims again comes again.
func (t *turn) dropEnded(ctx context.Context, entries []bookfile.Entry) (rest []bookfile.Entry, err error) {
	if len(entries) == 0 {
		return nil, nil
	}
	const looked = 100 // it happened since the file was last looked at
	events, err := t.au.app.Locks.Events(ctx, lockkeeper.EventQuery{Latest: true, Limit: looked})
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

// note adds a note that is not there yet.
func (t *turn) note(n Note) {
	if !slices.ContainsFunc(t.notes, func(o Note) bool { return o.Kind == n.Kind && o.Entry == n.Entry }) {
		t.notes = append(t.notes, n)
	}
}

// collided tells of foreign claims on what is held.
func (t *turn) collided(ctx context.Context, entries []bookfile.Entry, met map[int][]lockkeeper.Overlap) error {
	for _, i := range slices.Sorted(maps.Keys(met)) {
		n := Note{Kind: Collision, Entry: entries[i]}
		for _, o := range met[i] {
			held, err := t.au.app.Locks.Entry(ctx, o.Record.ID)
			if err != nil {
				return err
			}
			if held != nil && !slices.ContainsFunc(n.Blockers, func(s Standing) bool { return s.Grant == held.ID }) {
				n.Blockers = append(n.Blockers, t.au.standing(*held, time.Now()))
			}
		}
		t.note(n)
	}
	return nil
}

// record puts a foreign claim that was refused on record, once for each change of
// what is in its way.
func (au *Author) record(act *lock.Act, req lockkeeper.Request, found []lockkeeper.Overlap) error {
	key, sum := "foreign claim "+au.site+" "+req.Metadata[claimKey]+" "+req.Metadata[instanceKey], lock.Digest(found)
	told, err := act.Tx().Denial(key)
	if err != nil || told == sum {
		return err
	}
	if err := act.Tx().SetDenial(key, sum); err != nil {
		return err
	}
	_, err = act.Note(lockkeeper.Event{Kind: lockkeeper.EventDenied, Actor: lockkeeper.Actor{Name: req.Holder, Kind: lockkeeper.ActorHolder}, Holder: req.Holder,
		Locks: req.Locks, Conflicts: lock.Conflicts(found), Reason: fmt.Sprintf("a foreign claim on %s in %s, which is held: the holder stays the holder", Names(req.Metadata)[0], au.file.Path())})
	return err
}

// request is what a foreign entry asks for. A resource that the table does not have
// is a name of its own, which nothing else overlaps.
func (au *Author) request(e bookfile.Entry) lockkeeper.Request {
	t, err := au.resolve(e.Resource, lockkeeper.Write, au.fromRoot)
	if err != nil {
		t.locks = []lockkeeper.Lock{{Target: lockkeeper.Target{Path: "locks.json/" + e.Resource, Kind: lockkeeper.Node}, Mode: lockkeeper.Write}}
	}
	return lockkeeper.Request{Holder: holderName(e.Instance), Policy: policyInstance, TTL: au.left(e), Locks: t.locks,
		Metadata: map[string]string{claimKey: listed([]string{e.Resource}), foreignKey: au.site, instanceKey: e.Instance, stampKey: e.Timestamp}}
}

// holderName makes of an instance's name what a holder may be called.
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

// left is how long a foreign claim is not stale yet. One from the future, by the
// clock here, or without a time, is as old as our knowledge of it.
func (au *Author) left(e bookfile.Entry) time.Duration {
	at, ok := e.Time()
	if age := time.Since(at); ok && age > 0 {
		return max(au.staleAfter-age, time.Nanosecond)
	}
	return au.staleAfter
}

// renewed takes up the new time of a foreign claim.
func (au *Author) renewed(act *lock.Act, c bookfile.Claim) error {
	rec, err := act.Tx().Get(c.ID)
	if err != nil || rec == nil {
		return err
	}
	next := *rec
	next.Metadata = maps.Clone(rec.Metadata)
	next.Metadata[stampKey] = c.Timestamp
	next.TTL, next.Heartbeat, next.HeartbeatAt = au.left(c.Entry), act.Now().Lease, act.Now().Wall
	next.Expires, next.ExpiresAt = act.Now().Lease.Add(next.TTL), act.Now().Wall.Add(next.TTL)
	return act.Tx().Save(&next)
}

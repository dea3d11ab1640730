//go:build !nopostgres

package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"lockkeeper"
	"lockkeeper/store"
)

func (p *Postgres) TryGrant(ctx context.Context, rec *store.Record, ev lockkeeper.Event) (granted bool, err error) {
	if p.pooled {
		return false, nil
	}
	process, metadata, locks, err := bodies(rec)
	if err != nil {
		return false, err
	}
	event, err := encodeEvent(&ev)
	if err != nil {
		return false, err
	}
	at, exact, above, lo, hi, below := masks(rec.Locks)
	paths, modes, kinds := columns(rec.Locks)
	var seq, now int64
	lease, wall := p.injected()
	unsure := false
	err = p.with(ctx, func(conn *pgx.Conn) (bool, error) {
		err := p.session(ctx, conn).query(`CALL admit($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14,$15,$16,$17,$18,$19,$20,$21,$22,$23,NULL,NULL)`,
			[]any{p.key, p.last.Load(), lease, wall, rec.ID, rec.Holder, rec.Policy, rec.TokenHash[:], int64(rec.TTL), process, metadata, locks, event, wideKinds(),
				at, exact, above, lo, hi, below, paths, modes, kinds}, func(scan func(...any) error) error { return scan(&seq, &now) })
		unsure = lost(err, conn) || interrupted(err)
		return pgconn.SafeToRetry(err), err
	})
	if unsure {
		seq, now, err = p.findGrant(ctx, rec.ID, err)
	}
	if err != nil || seq == 0 {
		return false, p.explain(ctx, err)
	}
	p.saw(seq)
	m := store.Moment{Lease: lockkeeper.Instant(now), Wall: time.Unix(0, now).UTC()}
	if wall != nil {
		m.Wall = time.Unix(0, *wall).UTC()
	}
	rec.Ticket, rec.Fence, rec.State = uint64(seq), uint64(seq), store.StateHeld
	rec.AcquiredAt, rec.HeartbeatAt, rec.Heartbeat = m.Wall, m.Wall, m.Lease
	if rec.TTL > 0 {
		rec.Expires, rec.ExpiresAt = m.Lease.Add(rec.TTL), m.Wall.Add(rec.TTL)
	}
	return true, nil
}

// interrupted reports whether the server aborted a statement. The function admit may already
// have granted the request and been waiting for the disk.
func interrupted(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && strings.HasPrefix(pg.Code, "57")
}

// injected returns the time of the test clock, or NULL to use the server's clock.
func (p *Postgres) injected() (lease, wall *int64) {
	if p.opt.Clock == nil {
		return nil, nil
	}
	m := p.opt.Clock()
	l, w := int64(m.Lease), fromTime(m.Wall)
	return &l, &w
}

// findGrant looks up whether a grant was made although the answer was lost, and makes it
// durable. The server may not have begun with the request yet. So a missing grant is
// canceled: the function admit finds the note and does nothing. The engine's own
// transaction then decides, as after a conflict.
func (p *Postgres) findGrant(ctx context.Context, id string, cause error) (seq, now int64, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.opt.Busy)
	defer cancel()
	for {
		err = p.inTransaction(ctx, func(s *pgSession) error {
			err := errors.Join(s.exec(`SELECT 1 FROM spaces WHERE key = $1 FOR UPDATE`, p.key),
				s.query(`SELECT ticket, heartbeat FROM requests WHERE id = $2 AND space + 0 = $1`, []any{p.key, id},
					func(scan func(...any) error) error { return scan(&seq, &now) }))
			if err == nil && seq == 0 {
				err = s.exec(`INSERT INTO denials (space, key, digest, at) VALUES ($1, 'called off ' || $2, 1, `+nowSQL+`) ON CONFLICT DO NOTHING`, p.key, id)
			}
			return err
		})
		if err == nil {
			return seq, now, nil
		}
		select {
		case <-ctx.Done():
			return 0, 0, &lockkeeper.StoreError{Store: p.name, Reason: fmt.Sprintf("the connection broke, and whether grant %s exists is unknown", id),
				Next: "check with `lockkeeper status` when the server is back; the grant expires with its lease", Err: errors.Join(cause, err), Temporary: true}
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (p *Postgres) TryRelease(ctx context.Context, id string, tokenHash [32]byte) (done bool, err error) {
	if p.pooled {
		return false, nil
	}
	var seq int64
	_, wall := p.injected()
	err = p.with(ctx, func(conn *pgx.Conn) (bool, error) {
		err := p.session(ctx, conn).query(`CALL dismiss($1,$2,$3,$4,$5,$6,$7,NULL)`, []any{p.key, wall, id, tokenHash[:],
			string(lockkeeper.EventReleased), string(lockkeeper.ActorHolder), p.channel()}, func(scan func(...any) error) error { return scan(&seq) })
		if lost(err, conn) {
			return false, nil // treat the grant as not made, and let the engine's own transaction check
		}
		return pgconn.SafeToRetry(err), err
	})
	if err != nil || seq == 0 {
		return false, p.explain(ctx, err)
	}
	p.saw(seq)
	p.listen.wake([]string{id})
	return true, nil
}

func (p *Postgres) TryRenew(ctx context.Context, id string, tokenHash [32]byte, lease bool, process *lockkeeper.Process) (rec *store.Record, err error) {
	if p.pooled {
		return nil, nil
	}
	var body any
	if process != nil {
		if body, err = encode(process); err != nil {
			return nil, err
		}
	}
	now, wall := p.injected()
	err = p.with(ctx, func(conn *pgx.Conn) (bool, error) {
		err := p.session(ctx, conn).query(`SELECT `+recordColumns+` FROM renew($1,$2,$3,$4,$5,$6,$7) AS r`, []any{p.key, now, wall, id, tokenHash[:], lease, body},
			func(scan func(...any) error) error {
				var row recordRow
				if err := scan(row.dest()...); err != nil {
					return err
				}
				var err error
				rec, err = row.record(p.space, &p.locksCache)
				return err
			})
		if lost(err, conn) {
			rec = nil // the same again in the engine's own transaction does no harm
			return false, nil
		}
		return pgconn.SafeToRetry(err), err
	})
	if err != nil {
		return nil, p.explain(ctx, err)
	}
	return rec, nil
}

// wideKinds returns the set of kinds that also cover paths below, as bits 1 << kind.
func wideKinds() (mask int64) {
	for k := lockkeeper.File; k <= lockkeeper.Tree; k++ {
		if k.Below() {
			mask |= 1 << k
		}
	}
	return mask
}

// masks returns the paths and ranges where a lock could conflict with one of the given locks, and the
// conflicting modes at each. They are the requested paths, the paths above them and the
// ranges below them.
func masks(locks []lockkeeper.Lock) (at []string, exact, above []int64, lo, hi []string, below []int64) {
	index := make(map[string]int, 2*len(locks))
	place := func(path string) int {
		i, ok := index[path]
		if !ok {
			i = len(at)
			index[path] = i
			at, exact, above = append(at, path), append(exact, 0), append(above, 0)
		}
		return i
	}
	for _, l := range locks {
		mask := int64(lockkeeper.ConflictMask(l.Mode))
		i := place(l.Path)
		exact[i] |= mask
		for path, ok := lockkeeper.Parent(l.Path); ok; path, ok = lockkeeper.Parent(path) {
			i := place(path)
			if above[i]&mask == mask {
				break // the paths above it already have this mask
			}
			above[i] |= mask
		}
		if l.Kind.Below() {
			from, to := lockkeeper.Range(l.Path)
			lo, hi, below = append(lo, from), append(hi, to), append(below, mask)
		}
	}
	return at, exact, above, lo, hi, below
}

package sqlstore

import (
	"cmp"
	"encoding"
	"fmt"
	"maps"
	"slices"
	"time"

	"lockkeeper"
	"lockkeeper/store"
)

// landingColumns lists the columns of a landing in the order of landingRow.
const landingColumns = `l.seq, l.commit_id, l.grant_id, l.holder, l.fence, l.site, l.state, l.at, l.made, l.clears, l.draft, l.undoes, l.taker`

type landingRow struct {
	seq                     int64
	commit, grantID, holder string
	fence                   int64
	site                    string
	state, at               int64
	made, clears, draft     string
	undoes                  int64
	taker                   string
}

func (r *landingRow) dest() []any {
	return []any{&r.seq, &r.commit, &r.grantID, &r.holder, &r.fence, &r.site, &r.state, &r.at, &r.made, &r.clears, &r.draft, &r.undoes, &r.taker}
}

// landing returns the landing without its changes.
func (r *landingRow) landing() (*lockkeeper.Landing, error) {
	l := &lockkeeper.Landing{
		Seq: uint64(r.seq), Commit: r.commit, GrantID: r.grantID, Holder: r.holder, Fence: uint64(r.fence), Site: r.site,
		State: lockkeeper.LandingState(r.state), At: toTime(r.at), Draft: r.draft, Undoes: uint64(r.undoes), Taker: r.taker,
	}
	if err := decode(r.made, &l.Made); err != nil {
		return nil, fmt.Errorf("directories made by landing %d: %w", r.seq, err)
	}
	if err := decode(r.clears, &l.Clears); err != nil {
		return nil, fmt.Errorf("directories cleared by landing %d: %w", r.seq, err)
	}
	return l, nil
}

func (t *tx) Landings(q store.LandingQuery) ([]*lockkeeper.Landing, error) {
	var out []*lockkeeper.Landing
	bySeq := map[int64]*lockkeeper.Landing{}
	add := func(scan func(...any) error) error {
		var row landingRow
		if err := scan(row.dest()...); err != nil {
			return err
		}
		l, err := row.landing()
		out, bySeq[row.seq] = append(out, l), l
		return err
	}
	var err error
	if q.Path == "" {
		sql, args := landingsSQL(t.key, q)
		err = t.query(sql, args, add)
	} else {
		err = t.landingsAt(q, add)
	}
	if err != nil || len(out) == 0 {
		return nil, err
	}
	slices.SortFunc(out, func(a, b *lockkeeper.Landing) int {
		if q.Latest {
			a, b = b, a
		}
		return cmp.Compare(a.Seq, b.Seq)
	})
	err = t.numbered(changesByLanding, t.key, slices.Collect(maps.Keys(bySeq)), func(scan func(...any) error) error {
		var seq int64
		var a lockkeeper.PathChange
		var was, is string
		if err := scan(&seq, &a.Path, &was, &is); err != nil {
			return err
		}
		if err := readVersion(was, &a.Old, a.Path, seq); err != nil {
			return err
		}
		l := bySeq[seq]
		err := readVersion(is, &a.New, a.Path, seq)
		l.Changes = append(l.Changes, a)
		return err
	})
	return out, err
}

// landingsAt selects the landings that changed a path, in unspecified order.
func (t *tx) landingsAt(q store.LandingQuery, each func(func(...any) error) error) error {
	var seqs []int64
	sql, args := landingsAtSQL(t.key, q)
	err := t.query(sql, args, func(scan func(...any) error) error {
		var seq int64
		err := scan(&seq)
		seqs = append(seqs, seq)
		return err
	})
	if err != nil || len(seqs) == 0 {
		return err
	}
	return t.numbered(landingsByNumber, t.key, seqs, each)
}

// readVersion does not wrap the error, because the stored data is at fault and not the caller's
// input.
func readVersion(text string, into encoding.TextUnmarshaler, path string, seq int64) error {
	if err := into.UnmarshalText([]byte(text)); err != nil {
		return fmt.Errorf("cannot read the entry of landing %d for %s: %v", seq, path, err)
	}
	return nil
}

// landingsSQL selects landingColumns of the landings of a query without a path. If a query can
// match only a few landings, it writes the number so that no index on it applies. Otherwise the
// planner would scan a whole space for the requested order.
func landingsSQL(key int64, q store.LandingQuery) (sql string, args []any) {
	space, number := `l.space`, `l.seq`
	if q.Open || q.Commit != "" {
		space, number = `l.space + 0`, `l.seq + 0`
	}
	args = []any{key, int64(q.After)}
	sql = `SELECT ` + landingColumns + ` FROM landings l WHERE ` + space + ` = $1` + conditions(q, &args) + pageOf(number, q, &args)
	return sql, args
}

// landingsAtSQL selects the numbers of the landings of a query with a path. A scalar subquery
// keeps the planner from turning it into a join in another order.
func landingsAtSQL(key int64, q store.LandingQuery) (sql string, args []any) {
	args = []any{key, int64(q.After), q.Path}
	sql = `SELECT c.landing FROM changes c WHERE c.space = $1 AND c.path = $3 AND (SELECT 1 FROM landings l WHERE l.space = $1 AND l.seq = c.landing` +
		conditions(q, &args) + `) = 1` + pageOf(`c.landing`, q, &args)
	return sql, args
}

// conditions returns the WHERE conditions of a query except those on the number and the
// changes.
func conditions(q store.LandingQuery, args *[]any) (sql string) {
	if q.Commit != "" {
		sql += ` AND l.commit_id <> '' AND l.commit_id = ` + argument(args, q.Commit)
	}
	if q.GrantID != "" {
		sql += ` AND l.grant_id = ` + argument(args, q.GrantID)
	}
	if q.Open {
		sql += ` AND l.state = 1` // a literal, because a parameter would rule out the partial index
	}
	return sql
}

// pageOf returns the condition on the number, the order and the limit. The second argument of
// the statement is the number to start after.
func pageOf(number string, q store.LandingQuery, args *[]any) string {
	sql := ` AND ` + number + ` > $2`
	if q.Seq != 0 {
		sql += ` AND ` + number + ` = ` + argument(args, int64(q.Seq))
	}
	if q.Before != 0 {
		sql += ` AND ` + number + ` < ` + argument(args, int64(q.Before))
	}
	sql += ` ORDER BY ` + number
	if q.Latest {
		sql += ` DESC`
	}
	if q.Limit > 0 {
		sql += ` LIMIT ` + argument(args, int64(q.Limit))
	}
	return sql
}

func argument(args *[]any, value any) string {
	*args = append(*args, value)
	return fmt.Sprintf(`$%d`, len(*args))
}

// landedSQL finds the latest landing of a path that was not undone.
const landedSQL = `SELECT c.path, c.landing, c.new FROM changes c WHERE c.space = $1 AND c.path = $2
 AND (SELECT 1 FROM landings l WHERE l.space = $1 AND l.seq = c.landing AND l.state <> $3 AND ($4 = '' OR l.grant_id = $4)) = 1
 ORDER BY c.landing DESC LIMIT 1`

func (t *tx) Landed(grantID string, paths ...string) (map[string]store.LandedVersion, error) {
	left := map[string]store.LandedVersion{}
	err := t.landed(t.key, grantID, paths, func(scan func(...any) error) error {
		var path, text string
		var landing int64
		if err := scan(&path, &landing, &text); err != nil {
			return err
		}
		l := store.LandedVersion{Seq: uint64(landing)}
		err := readVersion(text, &l.Version, path, landing)
		left[path] = l
		return err
	})
	return left, err
}

func (t *tx) InsertLanding(l *lockkeeper.Landing) error {
	made, err := encode(l.Made)
	if err != nil {
		return err
	}
	clears, err := encode(l.Clears)
	if err != nil {
		return err
	}
	err = t.exec(`INSERT INTO landings (space, seq, commit_id, grant_id, holder, fence, site, state, at, made, clears, draft, undoes, taker)
 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
		t.key, int64(l.Seq), l.Commit, l.GrantID, l.Holder, int64(l.Fence), l.Site, int64(l.State), fromTime(l.At), made, clears, l.Draft, int64(l.Undoes), l.Taker)
	if err != nil {
		return err
	}
	return t.insertChanges(t.key, l.Seq, l.Changes)
}

func (t *tx) TakeLanding(e store.TakenLanding) error {
	return t.exec(`UPDATE landings SET taker = $3 WHERE space = $1 AND seq = $2 AND state = $4`, t.key, int64(e.Seq), e.Taker, int64(lockkeeper.Decided))
}

func (t *tx) EndLanding(e store.TakenLanding, state lockkeeper.LandingState) error {
	return t.exec(`UPDATE landings SET state = $3 WHERE space = $1 AND seq = $2 AND state = $4 AND taker = $5`,
		t.key, int64(e.Seq), int64(state), int64(lockkeeper.Decided), e.Taker)
}

// Limits of one pruning transaction. Between two prunings there are at most a thousand events and
// landings, with some dozens of changes each.
const (
	pruneLandingsAtOnce = 1_000
	pruneChangesAtOnce  = 50_000
)

// oldLandingsSQL reads only the landings with the lowest numbers, because times need not rise
// with numbers.
const oldLandingsSQL = `SELECT page.seq, coalesce((SELECT c.n FROM changes c WHERE c.space = $1 AND c.landing = page.seq ORDER BY c.n DESC LIMIT 1), 0)
 FROM (SELECT seq, at FROM landings WHERE space = $1 AND state <> $2 ORDER BY seq LIMIT $3) AS page WHERE page.at < $4 ORDER BY page.seq`

// pruneLandings deletes the oldest landings that are past the time limit and not in state
// Decided.
func (t *tx) pruneLandings(before time.Time) error {
	var due []int64
	changes := int64(0)
	err := t.query(oldLandingsSQL, []any{t.key, int64(lockkeeper.Decided), int64(pruneLandingsAtOnce), fromTime(before)}, func(scan func(...any) error) error {
		var seq, last int64
		err := scan(&seq, &last)
		if changes < pruneChangesAtOnce {
			due, changes = append(due, seq), changes+last+1
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, seq := range due {
		if err := t.exec(`DELETE FROM changes WHERE space = $1 AND landing = $2`, t.key, seq); err != nil {
			return err
		}
		if err := t.exec(`DELETE FROM landings WHERE space = $1 AND seq = $2`, t.key, seq); err != nil {
			return err
		}
	}
	return nil
}

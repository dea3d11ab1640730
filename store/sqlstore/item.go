package sqlstore

import (
	"fmt"
	"time"

	"lockkeeper"
	"lockkeeper/store"
)

// itemColumns lists the columns of an item in the order of itemRow.
const itemColumns = `seq, id, key, root, locks, body, phase, pools, status, stage, standing, rank, place, tag, chain, parked_on, roused_by, since, leads, blocked, due,
 blockers, retries, attempts, grant_id, worker, slot, shuns, dispatched_at, completed_at, note, failure`

// An itemRow is one row of the items table. The columns up to body never change after the
// insert.
type itemRow struct {
	seq                     int64
	id, key, root           string
	locks, body             string
	phase, pools, status    string
	stage, precedence       int64
	rank, place             int64
	turn, chain             int64
	waitsOn, wokenBy        string
	since, firstSince       int64
	blocked, checkAt        int64
	blockers                int64
	retries, attempts       int64
	grantID, worker         string
	slot                    int64
	avoidNode               string
	dispatchedAt, completed int64
	note, failure           string
}

func (r *itemRow) dest() []any {
	return []any{&r.seq, &r.id, &r.key, &r.root, &r.locks, &r.body, &r.phase, &r.pools, &r.status, &r.stage, &r.precedence, &r.rank, &r.place, &r.turn, &r.chain,
		&r.waitsOn, &r.wokenBy, &r.since, &r.firstSince, &r.blocked, &r.checkAt, &r.blockers, &r.retries, &r.attempts, &r.grantID, &r.worker, &r.slot, &r.avoidNode,
		&r.dispatchedAt, &r.completed, &r.note, &r.failure}
}

// An itemBody holds the fields of an item that no query filters on.
type itemBody struct {
	Workflow string           `json:"workflow"`
	Unit     string           `json:"unit,omitempty"`
	Project  string           `json:"project,omitempty"`
	Class    string           `json:"class,omitempty"`
	Policy   string           `json:"policy"`
	Caps     []string         `json:"caps,omitempty"`
	After    []string         `json:"after,omitempty"`
	Command  []string         `json:"command,omitempty"`
	Dir      string           `json:"dir,omitempty"`
	By       lockkeeper.Actor `json:"by"`
	Estimate time.Duration    `json:"estimate,omitempty"`
	QueuedAt time.Time        `json:"queued_at"`
}

func (r *itemRow) item(known *locksCache) (*lockkeeper.Item, error) {
	var b itemBody
	if err := decode(r.body, &b); err != nil {
		return nil, fmt.Errorf("requirements of item %s: %w", r.id, err)
	}
	it := &lockkeeper.Item{
		ID: r.id, Seq: uint64(r.seq), Key: r.key, Root: r.root,
		Workflow: b.Workflow, Unit: b.Unit, Project: b.Project, Class: b.Class, Policy: b.Policy, Caps: b.Caps, After: b.After,
		Command: b.Command, Dir: b.Dir, By: b.By, Estimate: b.Estimate, QueuedAt: b.QueuedAt,
		Phase: r.phase, Rank: int(r.rank), Status: lockkeeper.ItemStatus(r.status), Stage: lockkeeper.ItemStage(r.stage),
		Escalated: r.precedence%2 == 0, Turn: uint64(r.turn), Chain: time.Duration(r.chain), WaitsOn: r.waitsOn, WokenBy: r.wokenBy,
		Since: lockkeeper.Instant(r.since), FirstSince: lockkeeper.Instant(r.firstSince), Blocked: time.Duration(r.blocked), CheckAt: lockkeeper.Instant(r.checkAt), Blockers: uint64(r.blockers),
		Retries: int(r.retries), Attempts: int(r.attempts), GrantID: r.grantID, Worker: r.worker, Slot: int(r.slot), AvoidNode: r.avoidNode,
		DispatchedAt: toTime(r.dispatchedAt), CompletedAt: toTime(r.completed), Note: r.note,
	}
	var err error
	if it.Locks, err = known.decode(r.locks); err != nil {
		return nil, fmt.Errorf("decode the locks of item %s: %w", r.id, err)
	}
	if err := decode(r.pools, &it.Pools); err != nil {
		return nil, fmt.Errorf("decode the pools of item %s: %w", r.id, err)
	}
	if err := decode(r.failure, &it.Failure); err != nil {
		return nil, fmt.Errorf("failure of item %s: %w", r.id, err)
	}
	return it, nil
}

// stored holds the facts about an item's row that a transaction needs in order to save it.
type stored struct {
	seq    int64
	onLock bool // the item waits on a lock
}

func (t *tx) items(sql string, args ...any) (out []*lockkeeper.Item, err error) {
	err = t.query(sql, args, func(scan func(...any) error) error {
		var row itemRow
		if err := scan(row.dest()...); err != nil {
			return err
		}
		it, err := row.item(t.locksCache)
		if err != nil {
			return err
		}
		if t.seen != nil {
			t.seen[it.ID] = stored{row.seq, store.IsOnLock(it.WaitsOn)}
		}
		out = append(out, it)
		return nil
	})
	return out, err
}

// item returns the first item that a query selects, or nil.
func (t *tx) item(sql string, args ...any) (*lockkeeper.Item, error) {
	found, err := t.items(sql, args...)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return found[0], nil
}

func (t *tx) InsertItem(it *lockkeeper.Item) error {
	body, err := encode(itemBody{
		Workflow: it.Workflow, Unit: it.Unit, Project: it.Project, Class: it.Class, Policy: it.Policy, Caps: it.Caps, After: it.After,
		Command: it.Command, Dir: it.Dir, By: it.By, Estimate: it.Estimate, QueuedAt: it.QueuedAt.UTC(),
	})
	if err != nil {
		return err
	}
	rest, err := changingColumns(it)
	if err != nil {
		return err
	}
	args := append([]any{t.key, int64(it.Seq), it.ID, it.Key, it.Root, encodeLocks(it.Locks), body}, rest...)
	err = t.exec(`INSERT INTO items (space, `+itemColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17,
 $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33)`, args...)
	if err == nil {
		t.keep(it, stored{seq: int64(it.Seq)})
	}
	return err
}

func (t *tx) SaveItem(it *lockkeeper.Item) error {
	if _, seen := t.seen[it.ID]; !seen { // this transaction has not read the item yet
		if _, err := t.Item(it.ID); err != nil {
			return err
		}
	}
	was, seen := t.seen[it.ID]
	if !seen {
		return fmt.Errorf("item %s is not stored", it.ID)
	}
	rest, err := changingColumns(it)
	if err != nil {
		return err
	}
	err = t.exec(`UPDATE items SET phase = $3, pools = $4, status = $5, stage = $6, standing = $7, rank = $8, place = $9, tag = $10, chain = $11, parked_on = $12,
 roused_by = $13, since = $14, leads = $15, blocked = $16, due = $17, blockers = $18, retries = $19, attempts = $20, grant_id = $21,
 worker = $22, slot = $23, shuns = $24, dispatched_at = $25, completed_at = $26, note = $27, failure = $28 WHERE space = $1 AND seq = $2`,
		append([]any{t.key, was.seq}, rest...)...)
	if err == nil {
		t.keep(it, was)
	}
	return err
}

// changingColumns returns the values of the columns that can change.
func changingColumns(it *lockkeeper.Item) ([]any, error) {
	pools, err := encode(it.Pools)
	if err != nil {
		return nil, err
	}
	failure, err := encode(it.Failure)
	if err != nil {
		return nil, err
	}
	return []any{it.Phase, pools, string(it.Status), int64(it.Stage), int64(it.Precedence()), int64(it.Rank), it.Place(), int64(it.Turn), int64(it.Chain), it.WaitsOn, it.WokenBy,
		int64(it.Since), int64(it.FirstSince), int64(it.Blocked), int64(it.CheckAt), int64(it.Blockers), int64(it.Retries), int64(it.Attempts), it.GrantID, it.Worker,
		int64(it.Slot), it.AvoidNode, fromTime(it.DispatchedAt), fromTime(it.CompletedAt), it.Note, failure}, nil
}

// keep records the item's state in this transaction and updates the count of items that wait on
// locks.
func (t *tx) keep(it *lockkeeper.Item, was stored) {
	is := stored{was.seq, store.IsOnLock(it.WaitsOn)}
	t.seen[it.ID] = is
	switch {
	case is.onLock && !was.onLock:
		t.waiting++
	case was.onLock && !is.onLock:
		t.waiting--
	}
}

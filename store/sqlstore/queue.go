package sqlstore

import (
	"fmt"
	"math"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/store"
)

// queueOrder is the order of lockkeeper.CompareItems in columns; standing is the precedence.
// The indexes items_ready and items_parked have the same order. Otherwise the queries below
// would sort, which a test forbids.
const queueOrder = `standing, rank, place, tag, seq`

// Each item query repeats the condition of the partial index that serves it and writes the
// space as the index does. This keeps the planner from reading a whole space.
const (
	itemSQL        = `SELECT ` + itemColumns + ` FROM items WHERE id = $2 AND id <> '' AND space + 0 = $1`
	itemWithKeySQL = `SELECT ` + itemColumns + ` FROM items WHERE key = $2 AND key <> '' AND space + 0 = $1`

	firstReadySQL = `SELECT ` + itemColumns + ` FROM items WHERE stage = 1 AND space + 0 = $1 AND root = $2
 ORDER BY ` + queueOrder + ` LIMIT 1`
	firstWaitingSQL = `SELECT ` + itemColumns + ` FROM items WHERE stage = 2 AND space + 0 = $1 AND parked_on = $2
 ORDER BY ` + queueOrder + ` LIMIT 1`

	// nextReadySQL selects the first item at or after a root or key, standing and rank. With >
	// instead of >=, SQLite would read all items of the previous rank.
	nextReadySQL = `SELECT ` + itemColumns + ` FROM items WHERE stage = 1 AND space + 0 = $1 AND (root, standing, rank) >= ($2, $3, $4)
 ORDER BY root, ` + queueOrder + ` LIMIT 1`
	nextWaitingSQL = `SELECT ` + itemColumns + ` FROM items WHERE stage = 2 AND space + 0 = $1 AND (parked_on, standing, rank) >= ($2, $3, $4)
 ORDER BY parked_on, ` + queueOrder + ` LIMIT 1`

	// waitKeysSQL jumps from key to key, however many items wait on each.
	waitKeysSQL = `WITH RECURSIVE k (parked_on) AS (
 SELECT (SELECT i.parked_on FROM items i WHERE i.stage = 2 AND i.space + 0 = $1 AND i.parked_on >= $2 ORDER BY i.parked_on LIMIT 1)
 UNION ALL
 SELECT (SELECT i.parked_on FROM items i WHERE i.stage = 2 AND i.space + 0 = $1 AND i.parked_on > k.parked_on ORDER BY i.parked_on LIMIT 1)
 FROM k WHERE substr(k.parked_on, 1, length($2)) = $2)
 SELECT parked_on FROM k WHERE substr(parked_on, 1, length($2)) = $2 ORDER BY parked_on`

	nextCheckSQL    = `SELECT due FROM items WHERE due > 0 AND space + 0 = $1 ORDER BY due LIMIT 1`
	itemsToCheckSQL = `SELECT ` + itemColumns + ` FROM items WHERE due > 0 AND space + 0 = $1 AND due <= $2 ORDER BY due, seq LIMIT $3`

	// censusSQL reads index entries and only a few rows for each count.
	censusSQL = `SELECT (SELECT count(*) FROM items WHERE stage = 1 AND space + 0 = $1 AND status = 'queued'),
 (SELECT count(*) FROM items WHERE stage = 2 AND space + 0 = $1 AND status = 'queued'),
 (SELECT count(*) FROM items WHERE status = 'dispatched' AND status <> '' AND space + 0 = $1),
 (SELECT count(*) FROM items WHERE status = 'completed' AND status <> '' AND space + 0 = $1),
 (SELECT count(*) FROM items WHERE status = 'error' AND status <> '' AND space + 0 = $1)`

	// oldItemsSQL reads only the items with the lowest numbers, because items need not complete in
	// order.
	oldItemsSQL = `SELECT page.id, page.seq FROM (SELECT id, seq, completed_at FROM items WHERE status = 'completed' AND status <> '' AND space + 0 = $1
 ORDER BY seq LIMIT $2) AS page WHERE page.completed_at < $3 ORDER BY page.seq`
)

func (t *tx) Item(id string) (*lockkeeper.Item, error) { return t.item(itemSQL, t.key, id) }

func (t *tx) ItemWithKey(key string) (*lockkeeper.Item, error) {
	return t.item(itemWithKeySQL, t.key, key)
}

func (t *tx) Items(q store.ItemQuery) ([]*lockkeeper.Item, error) {
	sql, args := itemsSQL(t.key, q)
	return t.items(sql, args...)
}

// itemsSQL selects a page of items.
func itemsSQL(key int64, q store.ItemQuery) (sql string, args []any) {
	args = []any{key}
	sql = `SELECT ` + itemColumns + ` FROM items WHERE `
	if q.Status == "" {
		sql += `space = $1`
	} else {
		sql += `space + 0 = $1 AND status <> '' AND status = ` + argument(&args, string(q.Status))
	}
	after, order := ` AND seq > `, ` ORDER BY seq`
	if q.Latest {
		after, order = ` AND seq < `, ` ORDER BY seq DESC`
	}
	if q.After != 0 {
		sql += after + argument(&args, int64(q.After))
	}
	return sql + order + ` LIMIT ` + argument(&args, int64(store.Page(q.Limit))), args
}

func (t *tx) FirstReady(root string) (*lockkeeper.Item, error) {
	return t.item(firstReadySQL, t.key, root)
}

func (t *tx) FirstWaiting(key string) (*lockkeeper.Item, error) {
	return t.item(firstWaitingSQL, t.key, key)
}

func (t *tx) SlotLeaders() ([]*lockkeeper.Item, error) {
	ready, err := t.leaders(nextReadySQL, "", func(it *lockkeeper.Item) string { return it.Root })
	if err != nil {
		return nil, err
	}
	waiting, err := t.leaders(nextWaitingSQL, store.OnPool(""), func(it *lockkeeper.Item) string { return it.WaitsOn })
	return append(ready, waiting...), err
}

// leaders returns the first item for each root or key, precedence and rank, among the roots or
// keys with a prefix.
func (t *tx) leaders(sql, prefix string, keyOf func(*lockkeeper.Item) string) (list []*lockkeeper.Item, err error) {
	key, precedence, rank := prefix, 0, int64(math.MinInt64) // sorts before every item
	for {
		it, err := t.item(sql, t.key, key, int64(precedence), rank)
		if err != nil || it == nil || !strings.HasPrefix(keyOf(it), prefix) {
			return list, err
		}
		list = append(list, it)
		key, precedence, rank = keyOf(it), it.Precedence(), int64(it.Rank)+1
	}
}

func (t *tx) WaitKeys(prefix string) (keys []string, err error) {
	err = t.query(waitKeysSQL, []any{t.key, prefix}, func(scan func(...any) error) error {
		var key string
		err := scan(&key)
		keys = append(keys, key)
		return err
	})
	return keys, err
}

func (t *tx) NextCheck() (lockkeeper.Instant, error) {
	due, err := t.number(nextCheckSQL, t.key)
	return lockkeeper.Instant(due), err
}

func (t *tx) ItemsToCheck(now lockkeeper.Instant, limit int) ([]*lockkeeper.Item, error) {
	return t.items(itemsToCheckSQL, t.key, int64(now), int64(limit))
}

func (t *tx) Census() (c store.Census, err error) {
	var ready, waiting, running, completed, failed int64
	err = t.query(censusSQL, []any{t.key}, func(scan func(...any) error) error {
		return scan(&ready, &waiting, &running, &completed, &failed)
	})
	return store.Census{Ready: int(ready), Waiting: int(waiting), Running: int(running), Completed: int(completed), Failed: int(failed)}, err
}

func (t *tx) SlotsTaken(pool string) (int, error) {
	n, err := t.number(`SELECT taken FROM pools WHERE space = $1 AND name = $2`, t.key, pool)
	return int(n), err
}

func (t *tx) TakeSlots(pool string, n int) error {
	return t.exec(`INSERT INTO pools (space, name, taken) VALUES ($1, $2, $3)
 ON CONFLICT (space, name) DO UPDATE SET taken = pools.taken + excluded.taken`, t.key, pool, int64(n))
}

func (t *tx) Turn(project string, rank int) (uint64, error) {
	n, err := t.number(`SELECT turn FROM turns WHERE space = $1 AND project = $2 AND rank = $3`, t.key, project, int64(rank))
	return uint64(n), err
}

func (t *tx) SetTurn(project string, rank int, turn uint64) error {
	return t.exec(`INSERT INTO turns (space, project, rank, turn) VALUES ($1, $2, $3, $4)
 ON CONFLICT (space, project, rank) DO UPDATE SET turn = excluded.turn`, t.key, project, int64(rank), int64(turn))
}

// number returns the number that a query selects, or 0 if there is no row.
func (t *tx) number(sql string, args ...any) (n int64, err error) {
	err = t.query(sql, args, func(scan func(...any) error) error { return scan(&n) })
	return n, err
}

func (t *tx) Workers() (out []lockkeeper.Worker, err error) {
	err = t.query(`SELECT id, body, expires FROM workers WHERE space = $1 ORDER BY id`, []any{t.key}, func(scan func(...any) error) error {
		var w lockkeeper.Worker
		var id, body string
		var expires int64
		if err := scan(&id, &body, &expires); err != nil {
			return err
		}
		if err := decode(body, &w); err != nil {
			return fmt.Errorf("worker %s: %w", id, err)
		}
		w.Expires = lockkeeper.Instant(expires)
		out = append(out, w)
		return nil
	})
	return out, err
}

func (t *tx) PutWorker(w lockkeeper.Worker) error {
	w.Began = w.Began.UTC()
	body, err := encode(w)
	if err != nil {
		return err
	}
	return t.exec(`INSERT INTO workers (space, id, body, expires) VALUES ($1, $2, $3, $4)
 ON CONFLICT (space, id) DO UPDATE SET body = excluded.body, expires = excluded.expires`, t.key, w.ID, body, int64(w.Expires))
}

func (t *tx) DeleteWorker(id string) error {
	return t.exec(`DELETE FROM workers WHERE space = $1 AND id = $2`, t.key, id)
}

func (t *tx) AnyWaitsOnLock() bool { return t.waiting > 0 }

// restartQueue resets the queue's instants after the lease clock restarted. Workers count as alive
// for some time, and every item with a check time is due now. Of the time for which an item was the
// first to wait, only the part that blocked has counts.
func (t *tx) restartQueue(workers time.Duration) error {
	err := t.exec(`UPDATE items SET since = CASE WHEN since <> 0 THEN CAST($1 AS BIGINT) ELSE 0 END, leads = CASE WHEN leads <> 0 THEN CAST($1 AS BIGINT) ELSE 0 END,
 due = CASE WHEN due > 0 THEN CAST($1 AS BIGINT) ELSE due END
 WHERE space = $2 AND (since <> 0 OR leads <> 0 OR due > 0)`, int64(t.now.Lease), t.key)
	if err != nil {
		return err
	}
	return t.exec(`UPDATE workers SET expires = $1 WHERE space = $2`, int64(t.now.Lease.Add(workers)), t.key)
}

// pruneItemsAtOnce bounds how many items one transaction deletes. Between two prunings there
// are about a thousand events, so no more items can have completed.
const pruneItemsAtOnce = 1_000

// pruneItems deletes the oldest items that completed before the given time, except the newest item.
func (t *tx) pruneItems(before time.Time) error {
	due := map[string]int64{}
	err := t.query(oldItemsSQL, []any{t.key, int64(pruneItemsAtOnce), fromTime(before)}, func(scan func(...any) error) error {
		var id string
		var seq int64
		err := scan(&id, &seq)
		due[id] = seq
		return err
	})
	if err != nil {
		return err
	}
	newest, err := t.Items(store.ItemQuery{Limit: 1, Latest: true})
	if err != nil {
		return err
	}
	for id, seq := range due {
		if id == newest[0].ID {
			continue
		}
		delete(t.seen, id)
		if err := t.exec(`DELETE FROM items WHERE space = $1 AND seq = $2`, t.key, seq); err != nil {
			return err
		}
	}
	return nil
}

package sqlstore

import (
	"time"

	"lockkeeper"
)

// epochSize is the distance between the first numbers of two epochs. Even with a new epoch
// every minute, numbers stay below 2^53, so JSON readers keep them exact.
const epochSize = 1 << 28

// nextEpoch returns the first number of an epoch above last. The epoch is also above every
// number that a lost database can have given, because those came from epochs of earlier
// minutes.
func nextEpoch(last uint64, now time.Time) uint64 {
	minutes := now.Sub(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) / time.Minute
	return max(last/epochSize+1, uint64(max(minutes, 0))) * epochSize
}

// epochOf returns the first number of the epoch of seq.
func epochOf(seq uint64) uint64 { return seq / epochSize * epochSize }

// newEpoch starts a new epoch for this physical database. It does nothing if the space already
// belongs to this database and its last number is not below above.
func (t *tx) newEpoch(incarnation string, above uint64) error {
	var was string
	err := t.query(`SELECT incarnation FROM spaces WHERE key = $1`, []any{t.key},
		func(scan func(...any) error) error { return scan(&was) })
	if err != nil || was == incarnation && above <= t.seq {
		return err
	}
	t.seq = nextEpoch(max(t.seq, above), t.now.Wall)
	if err := t.exec(`UPDATE spaces SET incarnation = $2 WHERE key = $1`, t.key, incarnation); err != nil {
		return err
	}
	_, err = t.Append(lockkeeper.Event{Kind: lockkeeper.EventEpoch, At: t.now.Wall, Reason: "the database was restored or copied",
		Actor: lockkeeper.Actor{Name: "lockkeeper", Kind: lockkeeper.ActorSystem}})
	return err
}

package sqlstore

import (
	"time"

	"lockkeeper"
)

// epochSize is how many numbers an epoch begins above the one before. With an
// epoch for each minute they stay below 2^53, which JSON readers keep exact.
const epochSize = 1 << 28

// nextEpoch is the first number of an epoch above last, and above all that a
// lost database can have given: those came from epochs of earlier minutes.
func nextEpoch(last uint64, now time.Time) uint64 {
	minutes := now.Sub(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) / time.Minute
	return max(last/epochSize+1, uint64(max(minutes, 0))) * epochSize
}

// epochOf is the first number of the epoch that a number belongs to.
func epochOf(seq uint64) uint64 { return seq / epochSize * epochSize }

// newEpoch makes this physical database the one that gives the numbers, unless
// it is already and has given all up to above.
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

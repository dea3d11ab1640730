package sqlstore

import (
	"fmt"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/store"
	"lockkeeper/store/storetest"
)

// land records a decided landing of some paths.
func land(tx store.Tx, grant string, paths ...string) error {
	seq, err := tx.Append(lockkeeper.Event{Kind: lockkeeper.EventLanded, At: tx.Now().Wall, GrantID: grant})
	if err != nil {
		return err
	}
	l := &lockkeeper.Landing{Seq: seq, Commit: fmt.Sprint("c", seq), GrantID: grant, State: lockkeeper.Decided, At: tx.Now().Wall}
	for _, p := range paths {
		l.Changes = append(l.Changes, lockkeeper.PathChange{Path: p, New: lockkeeper.Version{Kind: lockkeeper.File, Mode: 0o644}})
	}
	return tx.InsertLanding(l)
}

// landingPlans returns the landing queries that must use an index.
func landingPlans(key int64) map[string]plan {
	plans := map[string]plan{
		"landed": {landedSQL, []any{key, "p", int64(lockkeeper.Undone), "g"},
			"c USING INDEX changes_path (space=? AND path=?)", "AND (path = 'p'::text))", true},
	}
	add := func(name string, make func(int64, store.LandingQuery) (string, []any), q store.LandingQuery, sqlite, postgres string) {
		sql, args := make(key, q)
		plans[name] = plan{sql: sql, args: args, sqlite: sqlite, postgres: postgres}
	}
	add("number", landingsSQL, store.LandingQuery{Seq: 7}, "l USING INTEGER PRIMARY KEY (rowid=?)", "AND (seq = '7'::bigint))")
	add("page", landingsSQL, store.LandingQuery{After: 7, Limit: 2}, "l USING INTEGER PRIMARY KEY (rowid>?)", "AND (seq > '7'::bigint))")
	add("commit", landingsSQL, store.LandingQuery{Commit: "c"}, "l USING INDEX landings_commit (commit_id=?", "(commit_id = 'c'::text)")
	add("open", landingsSQL, store.LandingQuery{Open: true, Latest: true, Limit: 1}, "l USING INDEX landings_open", "using landings_open")
	add("open of a grant", landingsSQL, store.LandingQuery{Open: true, GrantID: "g"}, "l USING INDEX landings_open (grant_id=?", "(grant_id = 'g'::text)")
	add("path", landingsAtSQL, store.LandingQuery{Path: "p", Latest: true, Limit: 1}, "c USING COVERING INDEX changes_path (space=? AND path=?", "AND (path = 'p'::text) AND (landing > '0'::bigint))")
	return plans
}

func TestLandingPlansUseIndexes(t *testing.T) {
	plansUseIndexes(t, []string{"landings", "changes"}, landingPlans, func(tx store.Tx, i int) error {
		return land(tx, fmt.Sprint("g", i), fmt.Sprint("p", i), "p")
	})
}

// The statements of a landing of one file are sent with the commit, without a round trip of
// their own.
func TestPostgresLandingIsKeptBack(t *testing.T) {
	p := postgresSite(t).postgres(t, Options{})
	err := p.Update(t.Context(), func(lt store.Tx) error {
		queued := func() int { return len(lt.(*tx).session.(*pgSession).queued) }
		before := queued()
		if err := land(lt, "g", "a"); err != nil {
			return err
		}
		if err := lt.EndLanding(store.TakenLanding{Seq: 1}, lockkeeper.Committed); err != nil {
			return err
		}
		if n := queued() - before; n != 4 { // event, landing, its changes, its state
			t.Errorf("%d statements are kept back, want 4", n)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// After a reboot of the host, a grant with an open landing gets its whole lease again, like any
// held grant. A grant that is being revoked does not.
func TestRebootWhileLanding(t *testing.T) {
	s := sqliteSite(t)
	clock := storetest.NewClock()
	before := s.store(t, Options{Clock: clock.Now, Boot: "before"})
	states := []store.State{store.StateWaiting, store.StatePromoted, store.StateHeld, store.StateLanding, store.StateRevoking}
	err := before.Update(t.Context(), func(tx store.Tx) error {
		for _, state := range states {
			seq, err := tx.Append(lockkeeper.Event{At: tx.Now().Wall})
			if err != nil {
				return err
			}
			rec := &store.Record{Grant: lockkeeper.Grant{ID: fmt.Sprint(state), ExpiresAt: tx.Now().Wall.Add(time.Minute)},
				Ticket: seq, State: state, TTL: time.Hour, Expires: tx.Now().Lease.Add(time.Minute)}
			if state == store.StateRevoking {
				rec.Expires, rec.ExpiresAt = 0, time.Time{}
			}
			if err := tx.Insert(rec); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	now := store.Moment{Lease: 1000, Wall: clock.Now().Wall.Add(24 * time.Hour)}
	after := s.store(t, Options{Clock: func() store.Moment { return now }, Boot: "after"})
	err = after.View(t.Context(), func(r store.Reader) error {
		for _, state := range states {
			rec, err := r.Get(fmt.Sprint(state))
			if err != nil {
				return err
			}
			lease, shown := now.Lease, now.Wall
			switch {
			case state == store.StateRevoking:
				lease, shown = 0, time.Time{}
			case state.Confirmed():
				lease, shown = lease.Add(time.Hour), shown.Add(time.Hour)
			}
			if rec.State != state || rec.Expires != lease || !rec.ExpiresAt.Equal(shown) {
				t.Errorf("state %d is %d and expires at %d, %v; want %d, %v", state, rec.State, rec.Expires, rec.ExpiresAt, lease, shown)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

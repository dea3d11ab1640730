package progress

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/documents"
)

// atOnce runs acts concurrently and counts those that were not refused.
func atOnce(t *testing.T, acts ...func() error) (done int) {
	t.Helper()
	var all sync.WaitGroup
	results := make([]error, len(acts))
	for i, act := range acts {
		all.Go(func() { results[i] = act() })
	}
	all.Wait()
	for _, err := range results {
		if err == nil {
			done++
		} else {
			wantRefused(t, err)
		}
	}
	return done
}

// shows: PL-13 PL-25 PL-78
func TestConcurrentDecisionsConflict(t *testing.T) {
	ctx := t.Context()
	whole := newBook(t)
	bring(t, whole, "topics", "analyze")
	withGaps(t, whole)
	bring(t, whole, "plan", "batch_plan")
	bring(t, whole, "approved", "approve")
	for round := range 5 {
		b, _ := copied(t, whole)
		other := Open(Options{Documents: documents.Open(b.documents.Dir()), Flow: b.flow}) // like a tracker in another process
		slug := b.see(t, "topics").Topics[0].Slug
		if n := atOnce(t,
			func() error { return b.Answer(ctx, "topics", slug, documents.MethodPaste, "ann's", "ann") },
			func() error { return other.Answer(ctx, "topics", slug, documents.MethodAPI, "the runner's", "runner") },
			func() error { return other.RejectTopic(ctx, "topics", slug, "bob's", "bob") },
		); n != 1 {
			t.Errorf("round %d: %d answered one topic", round, n)
		}
		if n := atOnce(t,
			func() error { return b.DismissGap(ctx, unit, "b1", 1, "ann") },
			func() error { _, err := other.FollowUpGap(ctx, unit, "b1", 1, "the change", "bob"); return err },
		); n != 1 {
			t.Errorf("round %d: %d answered one gap", round, n)
		}
		var one, two string
		if n := atOnce(t,
			func() (err error) { one, err = b.FollowUpGap(ctx, unit, "b1", 2, "the change", "ann"); return err },
			func() (err error) { two, err = other.FollowUpGap(ctx, unit, "b1", 3, "the change", "bob"); return err },
			func() error { return other.PutCheck(ctx, unit, "b1", "ci", passed, nil) },
		); n != 3 || one == two {
			t.Errorf("round %d: %d of two gaps were followed up, by %s and %s", round, n, one, two)
		}
		if n := atOnce(t,
			func() error { return b.ApprovePlan(ctx, "plan", "ann") },
			func() error { return other.ApprovePlan(ctx, "plan", "bob") },
		); n != 1 {
			t.Errorf("round %d: %d approved one plan", round, n)
		}
		if n := atOnce(t,
			func() error { return b.WithdrawApproval(ctx, "approved", "ann") },
			func() error { _, err := other.Begin(ctx, "approved", "b1", "runner"); return err },
		); n != 1 {
			t.Errorf("round %d: of withdrawing and beginning %d succeeded", round, n)
		}
	}
}

// A person changes a decision while the batches are planned. Either act may come first.
// shows: PL-19 PL-62
func TestPlanningDuringADecision(t *testing.T) {
	ctx := t.Context()
	whole := newBook(t)
	bring(t, whole, unit, "decide")
	for range 5 {
		b, _ := copied(t, whole)
		n := atOnce(t,
			func() error { return b.PutPlan(ctx, unit, batches, nil) },
			func() error { return b.Decide(ctx, unit, "ann", Choice{Item: "i2", Was: flow.Todo}) },
		)
		u := b.see(t, unit)
		if n != 1 || (u.Plan == nil) != (u.Open() == 1) {
			t.Errorf("%d succeeded, plan %v, open %d", n, u.Plan, u.Open())
		}
	}
}

// A meddling is a context that edits a file by hand during an act.
type meddling struct {
	context.Context
	meddle func()
	at     int
}

func (m *meddling) Err() error {
	if m.at--; m.at == 0 {
		m.meddle()
	}
	return m.Context.Err()
}

// An edit by hand, which takes no lock, is not lost.
func TestEditsByHand(t *testing.T) {
	whole := newBook(t)
	bring(t, whole, unit, "audit")
	for at := 1; at < 20; at++ { // before the draft is written
		b, dir := copied(t, whole)
		path := filepath.Join(dir, decisionsDraft)
		ctx := &meddling{Context: t.Context(), at: at, meddle: func() {
			body := `{"items":[{"id":"i2","description":"Cache the feed","impact":"medium","effort":"medium","rationale":"slow","decision":"REJECT","by":"hand","at":"2026-01-01T00:00:00Z"}]}`
			ok(t, os.WriteFile(path, []byte(body), 0o644))
		}}
		ok(t, b.Decide(ctx, unit, "ann", Choice{Item: "i1", Decision: flow.Todo}))
		u := b.see(t, unit)
		one, _ := u.Item("i1")
		two, _ := u.Item("i2")
		if one.By != "ann" || two.By != "hand" {
			t.Errorf("after %d: i1 by %q, i2 by %q", at, one.By, two.By)
		}
	}
}

// shows: PL-85
func TestDamagedDraft(t *testing.T) {
	ctx := t.Context()
	b := newBook(t)
	bring(t, b, unit, "audit")
	ok(t, b.Decide(ctx, unit, "ann", Choice{Item: "i1", Decision: flow.Todo}))
	path := filepath.Join(b.documents.Unit(unit).Dir(), decisionsDraft)
	ok(t, os.Truncate(path, 30))
	u := b.see(t, unit)
	if u.Open() != 3 || len(u.Malformed) != 1 || !strings.Contains(u.Malformed[0].Path, decisionsDraft) {
		t.Errorf("open %d, malformed %v", u.Open(), u.Malformed)
	}
	ok(t, b.Decide(ctx, unit, "ann", Choice{Item: "i2", Decision: flow.Todo}))
	u = b.see(t, unit)
	if _, err := os.Stat(path + ".malformed-1"); u.Open() != 2 || len(u.Malformed) != 0 || err != nil {
		t.Errorf("open %d, malformed %v, kept %v", u.Open(), u.Malformed, err)
	}
}

func TestCanceledWaitForTheLock(t *testing.T) {
	b := newBook(t)
	bring(t, b, unit, "analyze")
	release, err := lockFolder(t.Context(), b.documents.Unit(unit).Dir())
	ok(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	bored := errors.New("bored")
	cancel(bored)
	if err := b.Recover(ctx, unit); !errors.Is(err, bored) {
		t.Errorf("got %v", err)
	}
	ok(t, release())
	ok(t, b.Recover(t.Context(), unit))
}

package progress

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/documents"
)

func TestMain(m *testing.M) {
	if os.Getenv(deciderEnv) != "" {
		decider()
		return
	}
	goleak.VerifyTestMain(m)
}

const unit = "blog/posts"

// start is the time at which the clock of tests begins.
var start = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

// clock returns a clock that advances by a second with every call.
func clock() func() time.Time {
	var n atomic.Int64
	return func() time.Time { return start.Add(time.Duration(n.Add(1)) * time.Second) }
}

func bookIn(dir string, f flow.Flow) *Tracker {
	return Open(Options{Documents: documents.Open(filepath.Join(dir, ".pipeline")), Screens: documents.Open(filepath.Join(dir, ".analysis")), Flow: f, Now: clock()})
}

func newBook(t *testing.T) *Tracker { return bookIn(t.TempDir(), flow.Controllers()) }

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func get[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		ok(t, err)
		return v
	}
}

func (b *Tracker) see(t *testing.T, name string) *Unit {
	t.Helper()
	return get[*Unit](t)(b.Unit(t.Context(), name))
}

// wantRefused checks that an act was refused and that the reason contains the words.
func wantRefused(t *testing.T, err error, words ...string) {
	t.Helper()
	if code := lockkeeper.CodeOf(err); code != lockkeeper.CodeRefused && code != lockkeeper.CodeInput {
		t.Fatalf("got %v (%s), want a refusal", err, code)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
	if !strings.Contains(err.Error(), "next:") {
		t.Errorf("%q does not say what to do", err)
	}
}

func wantStatus(t *testing.T, u *Unit, phase, status string) {
	t.Helper()
	if u.Phase() != phase || u.Status() != status {
		t.Errorf("%s is in %q, %q; want %q, %q", u.Name, u.Phase(), u.Status(), phase, status)
	}
}

var (
	analysis = flow.Analysis{Purpose: "posts", Behaviour: "lists them", Files: []string{"app/controllers/blog/posts_controller.rb"},
		Topics: []flow.Topic{{Prompt: "Which pagination do blogs use?"}, {Prompt: "Which pagination do blogs use!"}}}
	extract   = flow.Extract{Items: []flow.Possible{{Description: "paginate"}, {Description: "cache"}, {Description: "search"}, {Description: "old"}}}
	synthesis = flow.Synthesis{Items: []flow.Ready{
		{ID: "i1", Description: "Paginate the index", Impact: flow.High, Effort: flow.Low, Rationale: "slow"},
		{ID: "i2", Description: "Cache the feed", Impact: flow.Medium, Effort: flow.Medium, Rationale: "slow"},
		{ID: "i3", Description: "Full text search", Impact: flow.Low, Effort: flow.High, Rationale: "nice"},
	}, Dropped: []flow.Dropped{{ID: "i4", Reason: "done"}}}
	batches = []flow.Batch{
		{ID: "x", Title: "Paginate", Items: []string{"i1"}, WriteTargets: []string{"app/a.rb"}, Effort: flow.Low},
		{ID: "y", Title: "Cache", Items: []string{"i2"}, WriteTargets: []string{"app/b.rb"}, Effort: flow.Medium, After: []string{"x"}},
	}
	calls   = []flow.Call{{Agent: "claude", Phase: "some", USD: 0.25}}
	changed = []flow.File{{Path: "app/a.rb", New: lockkeeper.Version{Kind: lockkeeper.File, Mode: 0o644, Sum: [32]byte{1}}}}
	passed  = flow.Checked{State: flow.CheckPassed, Passed: true, Files: changed}
	pass    = flow.Verification{Verdict: flow.Verdict{Verdict: "pass", Report: "fine"}, Files: changed}
	landed  = flow.Landed{Landings: []uint64{7}, Grant: "g", Fence: 3, Files: changed, At: start}
)

// steps are the steps of a unit. Each one completes a phase.
var steps = []struct {
	name string
	do   func(ctx context.Context, b *Tracker, unit string) error
}{
	{"analyze", func(ctx context.Context, b *Tracker, unit string) error {
		return b.PutAnalysis(ctx, unit, analysis, calls)
	}},
	{"research", func(ctx context.Context, b *Tracker, unit string) error {
		return errors.Join(b.Answer(ctx, unit, "which-pagination-do-blogs-use", documents.MethodPaste, "keyset", "ann"),
			b.RejectTopic(ctx, unit, "which-pagination-do-blogs-use-2", "asked twice", "ann"))
	}},
	{"extract", func(ctx context.Context, b *Tracker, unit string) error {
		return b.PutExtract(ctx, unit, extract, calls)
	}},
	{"synthesize", func(ctx context.Context, b *Tracker, unit string) error {
		return b.PutSynthesis(ctx, unit, synthesis, calls)
	}},
	{"audit", func(ctx context.Context, b *Tracker, unit string) error { return b.Audit(ctx, unit) }},
	{"decide", func(ctx context.Context, b *Tracker, unit string) error {
		return b.Decide(ctx, unit, "ann", Choice{Item: "i1", Decision: flow.Todo}, Choice{Item: "i2", Decision: flow.Todo}, Choice{Item: "i3", Decision: flow.Defer, Notes: "later"})
	}},
	{"batch_plan", func(ctx context.Context, b *Tracker, unit string) error { return b.PutPlan(ctx, unit, batches, calls) }},
	{"approve", func(ctx context.Context, b *Tracker, unit string) error { return b.ApprovePlan(ctx, unit, "ann") }},
}

// bring takes a unit through the steps, up to and including last.
func bring(t *testing.T, b *Tracker, unit, last string) {
	t.Helper()
	for _, s := range steps {
		if err := s.do(t.Context(), b, unit); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		if s.name == last {
			return
		}
	}
}

// apply takes a batch of a unit through its phases, up to and including last.
func apply(t *testing.T, b *Tracker, unit, batch, last string) {
	t.Helper()
	ctx := t.Context()
	begun := get[*Batch](t)(b.Begin(ctx, unit, batch, "runner"))
	for _, s := range []struct {
		name string
		do   func() error
	}{
		{"apply", func() error {
			return b.PutApplied(ctx, unit, batch, flow.Applied{Batch: begun.Digest, Summary: "did it", Files: changed}, calls)
		}},
		{"test", func() error { return b.PutCheck(ctx, unit, batch, "test", passed, nil) }},
		{"ci", func() error { return b.PutCheck(ctx, unit, batch, "ci", passed, nil) }},
		{"verify", func() error { return b.PutVerification(ctx, unit, batch, pass, calls) }},
		{"land", func() error { return b.PutLanded(ctx, unit, batch, landed) }},
	} {
		if err := s.do(); err != nil {
			t.Fatalf("%s of %s: %v", s.name, batch, err)
		}
		if s.name == last {
			return
		}
	}
}

// files lists the files in a directory, without lock files.
func files(t *testing.T, dir string) (list []string) {
	t.Helper()
	ok(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() != ".lock" {
			rel, _ := filepath.Rel(dir, path)
			list = append(list, rel)
		}
		return err
	}))
	slices.Sort(list)
	return list
}

package documents

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"lockkeeper/durable"
	"lockkeeper/durable/durabletest"
)

// failing returns a store on the same directory whose operations fail as configured.
func failing(s *Store) (*Store, *durabletest.Faults) {
	faults := &durabletest.Faults{}
	bad := Open(s.Dir())
	bad.ops = func(*os.Root) durable.Ops { return faults }
	return bad, faults
}

// acts returns all functions that change files. Each one works on a store of prepare.
func acts() map[string]func(context.Context, *Store) error {
	return map[string]func(context.Context, *Store) error{
		"write": func(ctx context.Context, s *Store) error {
			_, err := s.Unit("new").Batch("b").Write(ctx, "apply.json", result{Count: 2}, About{})
			return err
		},
		"replace": func(ctx context.Context, s *Store) error {
			was, err := s.Unit("posts").Read(ctx, "analysis.json", nil)
			if err != nil {
				return err
			}
			_, err = s.Unit("posts").Replace(ctx, was, "analysis.json", result{Count: 2}, About{})
			return err
		},
		"remove": func(ctx context.Context, s *Store) error {
			was, err := s.Unit("posts").Read(ctx, "analysis.json", nil)
			if err != nil || was == nil {
				return err
			}
			return s.Unit("posts").Remove(ctx, was, "analysis.json")
		},
		"set aside": func(ctx context.Context, s *Store) error {
			_, err := s.Unit("posts").SetAside(ctx, "analysis.json")
			return err
		},
		"text": func(ctx context.Context, s *Store) error {
			return s.Unit("posts").WriteText(ctx, "topic", Text{Method: MethodAPI, At: at(2), Body: "new"})
		},
		"keep": func(ctx context.Context, s *Store) error {
			_, err := s.Unit("posts").Keep(ctx, strings.NewReader("new"))
			return err
		},
		"move": func(ctx context.Context, s *Store) error { return s.Record(ctx, moved()...) },
	}
}

// moved returns opposite decisions on two items, and a decision on a new one.
func moved() []PastDecision {
	return []PastDecision{{Description: "one", Controller: "c", Decision: Rejected, Timestamp: at(5)},
		{Description: "two", Controller: "c", Decision: Deferred, Timestamp: at(5)},
		{Description: "new", Controller: "c", Decision: Deferred, Timestamp: at(5)}}
}

func prepare(t *testing.T) *Store {
	t.Helper()
	s := fresh(t)
	_, err := s.Unit("posts").Write(t.Context(), "analysis.json", result{Count: 1}, About{})
	must(t, err)
	must(t, s.Unit("posts").WriteText(t.Context(), "topic", Text{Method: MethodAPI, At: at(1), Body: "old"}))
	must(t, s.Record(t.Context(), PastDecision{Description: "one", Controller: "c", Decision: Deferred, Timestamp: at(1)},
		PastDecision{Description: "two", Controller: "c", Decision: Rejected, Timestamp: at(1)}, PastDecision{Description: "stays", Controller: "c", Decision: Rejected, Timestamp: at(1)}))
	return s
}

// whole checks that every file of a store can be read and that no file of prepare is lost.
func whole(t *testing.T, s *Store, done string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	doc, err := s.Unit("posts").Read(ctx, "analysis.json", checkResult)
	if err != nil || doc == nil && done != "remove" && done != "set aside" {
		t.Errorf("the document: %v, %v", doc, err)
	}
	if doc, err := s.Unit("new").Batch("b").Read(ctx, "apply.json", checkResult); err != nil {
		t.Errorf("the new document: %v, %v", doc, err)
	}
	if text, err := s.Unit("posts").ReadText(ctx, "topic"); err != nil || text == nil {
		t.Errorf("the text: %v, %v", text, err)
	}
	entries, err := s.PastDecisions(ctx)
	must(t, err)
	var names []string
	for _, e := range entries {
		if e.Description != "new" {
			names = append(names, e.Description)
		}
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"one", "stays", "two"}) {
		t.Errorf("the decisions are %+v", entries)
	}
}

// Every operation of every act fails once. The act reports the error or succeeds. Existing files
// stay or are replaced. When the act is repeated, it succeeds.
// shows: GP-22 PL-85
func TestFullAndFailingDisks(t *testing.T) {
	for what, act := range acts() {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			for k := 0; ; k++ {
				s := prepare(t)
				bad, faults := failing(s)
				faults.FailAt(k, syscall.ENOSPC)
				err := act(t.Context(), bad)
				if len(faults.Trace()) <= k {
					must(t, err)
					if k < 2 {
						t.Errorf("only %d operations", k)
					}
					return
				}
				op := faults.Trace()[k]
				if err == nil && op != durabletest.Rename || err != nil && !errors.Is(err, syscall.ENOSPC) {
					t.Errorf("operation %d, %s, fails: got %v", k, op, err)
				}
				whole(t, s, what)
				if left := leftovers(t, s.Dir()); left != nil {
					t.Errorf("operation %d, %s, fails: left %q", k, op, left)
				}
				must(t, act(t.Context(), s))
				whole(t, s, what)
			}
		})
	}
}

// The process crashes at every operation of every act.
// shows: GP-22 PL-85
func TestCrashes(t *testing.T) {
	for what, act := range acts() {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			for k := 0; ; k++ {
				s := prepare(t)
				bad, faults := failing(s)
				faults.CrashAt(k)
				if err := act(t.Context(), bad); err == nil {
					return
				}
				whole(t, s, what)
				must(t, act(t.Context(), s))
				whole(t, s, what)
				if what == "move" {
					if entries, err := s.PastDecisions(t.Context()); err != nil || len(entries) != 4 || entries[3].Decision != Rejected || entries[3].Description != "one" {
						t.Errorf("after all: %+v, %v", entries, err)
					}
				}
			}
		})
	}
}

// A process may die before the name of a directory that it created is durable. So every write
// syncs all names.
// shows: PL-59
func TestDirectoriesAreDurable(t *testing.T) {
	s := fresh(t)
	for range 2 {
		bad, faults := failing(s)
		_, err := bad.Unit("posts").Batch("b").Write(t.Context(), "apply.json", result{}, About{})
		must(t, err)
		syncs := 0
		for _, op := range faults.Trace() {
			if op == durabletest.SyncDir {
				syncs++
			}
		}
		if syncs != 4 { // posts, batches, b and apply.json
			t.Errorf("synced %d times: %v", syncs, faults.Trace())
		}
	}
}

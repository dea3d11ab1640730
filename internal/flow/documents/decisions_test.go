package documents

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"lockkeeper"
)

func prior(t *testing.T, s *Store) []PastDecision {
	t.Helper()
	entries, err := s.PastDecisions(t.Context())
	must(t, err)
	return entries
}

func wantPrior(t *testing.T, s *Store, want ...PastDecision) {
	t.Helper()
	is := prior(t, s)
	for i := range is { // it was re-enabled just now
		if m := is[i].Reenabled; m != nil && i < len(want) && want[i].Reenabled != nil {
			want[i].Reenabled.At = m.At
		}
	}
	if len(is) == 0 && len(want) == 0 {
		return
	}
	if !reflect.DeepEqual(is, want) {
		t.Errorf("got\n%+v\nwant\n%+v", is, want)
	}
}

// shows: PL-65 PL-66 PL-67 GP-20
func TestDecisionsOutliveRuns(t *testing.T) {
	s := fresh(t)
	wantPrior(t, s)
	if _, err := os.Stat(s.Dir()); err == nil {
		t.Error("looking made the directory")
	}
	must(t, s.Record(t.Context()))
	later := PastDecision{Description: "Split the model", Controller: "blog/posts", Decision: Deferred, Timestamp: at(1), Notes: "next quarter", By: "anna"}
	never := PastDecision{Description: "Rewrite in Go", Controller: "blog/posts", Decision: Rejected, Timestamp: at(2)}
	other := PastDecision{Description: "Split the model", Controller: "users", Decision: Rejected, Timestamp: at(3)}
	must(t, s.Record(t.Context(), later, never))
	must(t, Open(s.Dir()).Record(t.Context(), other))
	wantPrior(t, s, later, never, other)
	var file struct{ Entries []map[string]any }
	data, err := os.ReadFile(filepath.Join(s.Dir(), "decisions", "deferred.json"))
	must(t, err)
	must(t, json.Unmarshal(data, &file))
	if want := []map[string]any{{"description": "Split the model", "controller": "blog/posts", "decision": "deferred",
		"timestamp": "2026-03-04T05:01:06.000000789Z", "notes": "next quarter", "by": "anna"}}; !reflect.DeepEqual(file.Entries, want) {
		t.Errorf("the file has %v", file.Entries)
	}

	again := PastDecision{Description: "  split THE model! ", Controller: "blog/posts", Decision: Rejected, Timestamp: at(4)}
	must(t, s.Record(t.Context(), again)) // the same item, now in the other file
	wantPrior(t, s, never, other, again)
	must(t, s.Record(t.Context(), again, again))
	wantPrior(t, s, never, other, again)
	must(t, s.Record(t.Context(), later)) // and back, like an undo
	wantPrior(t, s, later, never, other)
	changed := never
	changed.Notes = "really"
	must(t, s.Record(t.Context(), changed))
	wantPrior(t, s, later, changed, other)

	for _, e := range []PastDecision{{Controller: "c", Decision: Deferred}, {Description: "?!", Controller: "c", Decision: Deferred},
		{Description: "x", Decision: Deferred}, {Description: "x", Controller: "c"}, {Description: "x", Controller: "c", Decision: "todo"}} {
		var input *lockkeeper.InputError
		if err := s.Record(t.Context(), later, e); !errors.As(err, &input) {
			t.Errorf("%+v: got %v", e, err)
		}
	}
	wantPrior(t, s, later, changed, other)
}

// shows: GP-21
func TestForget(t *testing.T) {
	s := fresh(t)
	one := PastDecision{Description: "one", Controller: "c", Decision: Rejected, Timestamp: at(1)}
	two := PastDecision{Description: "two", Controller: "c", Decision: Deferred, Timestamp: at(2)}
	must(t, s.Record(t.Context(), one, two))
	otherwise := two
	otherwise.Decision, otherwise.Timestamp, otherwise.By = Rejected, at(3), "ben"
	must(t, s.Record(t.Context(), otherwise))
	var changed *ChangedError
	if err := s.Forget(t.Context(), one, two); !errors.As(err, &changed) || changed.By != "ben" {
		t.Errorf("another person's decision was withdrawn: %v", err)
	}
	wantPrior(t, s, one, otherwise)
	must(t, s.Forget(t.Context(), otherwise, one))
	wantPrior(t, s)
	must(t, s.Forget(t.Context(), otherwise, one)) // repeating it does no harm
	must(t, s.Forget(t.Context()))
	must(t, s.Record(t.Context(), PastDecision{Description: "now", Controller: "c", Decision: Deferred}))
	must(t, s.Forget(t.Context(), PastDecision{Description: "now", Controller: "c", Decision: Deferred}))
	wantPrior(t, s)
}

// shows: GP-21 PL-18
func TestReenable(t *testing.T) {
	s := fresh(t)
	no := PastDecision{Description: "Rewrite", Controller: "c", Decision: Rejected, Timestamp: at(1)}
	later := PastDecision{Description: "Split", Controller: "c", Decision: Deferred, Timestamp: at(1)}
	must(t, s.Record(t.Context(), later, no))
	must(t, s.Reenable(t.Context(), "c", "rewrite.", "anna"))
	must(t, s.Reenable(t.Context(), "c", "rewrite.", "ben"))
	marked := no
	marked.Reenabled = &Mark{By: "anna"}
	wantPrior(t, s, later, marked)
	must(t, s.UndoReenable(t.Context(), "c", "Rewrite", "ben"))
	must(t, s.UndoReenable(t.Context(), "c", "Rewrite", "ben"))
	wantPrior(t, s, later, no)
	for _, item := range [][2]string{{"c", "Split"}, {"c", "unknown"}, {"d", "Rewrite"}} {
		var input *lockkeeper.InputError
		if err := s.Reenable(t.Context(), item[0], item[1], "anna"); !errors.As(err, &input) {
			t.Errorf("%q: got %v", item, err)
		}
	}
	must(t, s.Reenable(t.Context(), "c", "rewrite", "anna"))
	must(t, s.Record(t.Context(), no)) // rejected again
	wantPrior(t, s, later, no)
}

// Members that a person adds to an entry stay until a new decision.
// shows: GP-22
func TestListsOfOthers(t *testing.T) {
	s := fresh(t)
	must(t, s.Record(t.Context(), PastDecision{Description: "a", Controller: "c", Decision: Rejected, Timestamp: at(1)}))
	path := filepath.Join(s.Dir(), "decisions", "rejected.json")
	must(t, os.WriteFile(path, []byte(`{"entries": [
		{"description": "by hand", "controller": "c", "decision": "rejected", "timestamp": "2026-01-01T00:00:00+02:00", "ticket": 7},
		{"description": "twice", "controller": "c", "decision": "rejected", "timestamp": "2026-01-01T00:00:00Z"},
		{"description": "Twice.", "controller": "c", "decision": "rejected", "timestamp": "2026-01-02T00:00:00Z"}]}`), 0o644))
	if is := prior(t, s); len(is) != 2 || is[1].Description != "Twice." {
		t.Errorf("got %+v", is)
	}
	must(t, s.Record(t.Context(), PastDecision{Description: "b", Controller: "c", Decision: Rejected, Timestamp: at(1)}))
	data, err := os.ReadFile(path)
	must(t, err)
	if !strings.Contains(string(data), `"ticket": 7`) || !strings.Contains(string(data), "+02:00") || strings.Contains(string(data), `"twice"`) {
		t.Errorf("got %s", data)
	}
	for text, part := range map[string]string{
		`{}`:                      "entries",
		`{"entries":null}`:        "entries",
		`{"entries":{}}`:          "entries",
		`{"entries":[],"more":1}`: "more",
		`{"entries":[{"description":"x","controller":"c","decision":"deferred","timestamp":"2026-01-01T00:00:00Z"}]}`: "items that are rejected",
		`{"entries":[{"description":"","controller":"c","decision":"rejected","timestamp":"2026-01-01T00:00:00Z"}]}`:  "entry 1",
		`{"entries":[{"description":"x","controller":"c","decision":"rejected","timestamp":"yesterday"}]}`:            "yesterday",
	} {
		must(t, os.WriteFile(path, []byte(text), 0o644))
		_, err := s.PastDecisions(t.Context())
		if wantMalformed(t, err); !strings.Contains(err.Error(), part) {
			t.Errorf("%s: got %v", text, err)
		}
	}
	must(t, os.WriteFile(path, []byte(`{"entries":[]}`), 0o644))
	wantPrior(t, s)
}

// shows: GP-20
func TestNormalize(t *testing.T) {
	for _, same := range [][]string{
		{"Split the model.", "  split  the\nMODEL ", "split—the, model!", "Split the model\u00a0…", "split_the-model"},
		{"Straße", "STRASSE", "strasse"},
		{"café", "cafe\u0301", "CAFÉ"},
	} {
		for _, text := range same {
			if Normalize(text) != Normalize(same[0]) {
				t.Errorf("%q is %q, and %q is %q", text, Normalize(text), same[0], Normalize(same[0]))
			}
		}
	}
	for _, other := range [][2]string{{"a < b", "a > b"}, {"split model", "splitmodel"}, {"add 1", "add 2"}, {"a + b", "a b"}} {
		if Normalize(other[0]) == Normalize(other[1]) {
			t.Errorf("%q", other)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		once := Normalize(text)
		if twice := Normalize(once); twice != once {
			t.Fatalf("%q becomes %q, and that %q", text, once, twice)
		}
	})
}

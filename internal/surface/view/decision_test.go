package view_test

import (
	"testing"

	"lockkeeper"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/project/projecttest"
)

// A decision has the details of its kind, and a reference to nothing is an input error.
//
// shows: PL-94
func TestDecision(t *testing.T) {
	s := sampleScene(t)
	projecttest.Audited(t, projecttest.Tracker(t, s.app), "blog/posts", "Paginate the index")
	decision := func(text string) error {
		ref, err := progress.ParseRef(text)
		must(t, err)
		d, err := s.look.Decision(t.Context(), "controllers", ref)
		if err == nil && (!d.Waits || d.Version == "" || d.Left != 1 || d.Item.Description != "Paginate the index") {
			t.Errorf("%+v", d)
		}
		return err
	}
	must(t, decision("item blog/posts/i1"))
	for _, missing := range []string{"item blog/posts/i9", "review blog/posts/b1", "gap blog/posts/b1/1", "topic blog/posts/x", "plan blog/unknown"} {
		if err := decision(missing); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
			t.Errorf("%s: %v", missing, err)
		}
	}
}

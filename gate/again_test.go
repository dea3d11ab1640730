package gate_test

import (
	"errors"
	"sync"
	"testing"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/rescue"
)

// A refused change that its holder repeats under a later grant is the same gap: it is kept and recorded once. The
// same change of another holder, for another reason or with other content is another gap.
//
// shows: SW-76
func TestRefusedAgain(t *testing.T) {
	w := newWorld(t, map[string]string{"a.rb": "a", "b.rb": "b"}, gate.Options{})
	why := errors.New("not in writes")
	refuse := func(holder, content string, why error, answered ...string) rescue.Entry {
		t.Helper()
		g := w.hold(holder, "a.rb")
		defer func() { must(t, g.Release(t.Context())) }()
		e, err := w.gate.Refuse(t.Context(), &g.Grant, gate.Put("b.rb", []byte(content)), why, answered...)
		must(t, err)
		return e
	}
	count := func(entries, gaps int) {
		t.Helper()
		list, err := w.gate.Rescue().List(t.Context())
		must(t, err)
		if told := w.events(lockkeeper.EventGap); len(list) != entries || len(told) != gaps {
			t.Fatalf("%d entries, %d gaps in the log, want %d and %d", len(list), len(told), entries, gaps)
		}
	}
	first := refuse("j1", "new", why)
	if again := refuse("j1", "new", why); again.ID != first.ID {
		t.Errorf("the same gap is %s and %s", first.ID, again.ID)
	}
	count(1, 1)
	refuse("j2", "new", why)
	refuse("j1", "newer", why)
	refuse("j1", "new", errors.New("too large"))
	count(4, 4)

	// A person answered the gap, or dropped its content. The next one is told.
	next := refuse("j1", "new", why, first.ID)
	if next.ID == first.ID {
		t.Error("an answered gap hides the next one")
	}
	if again := refuse("j1", "new", why, first.ID); again.ID != next.ID {
		t.Errorf("the same gap is %s and %s", next.ID, again.ID)
	}
	count(5, 5)
	must(t, w.gate.Rescue().Drop(first.ID), w.gate.Rescue().Drop(next.ID))
	refuse("j1", "new", why)
	count(4, 6)
}

// Equal changes that several processes keep at the same time stay on the shelf at least once.
func TestKeptAtTheSameTime(t *testing.T) {
	w := newWorld(t, map[string]string{"a.rb": "a"}, gate.Options{Actor: lockkeeper.Actor{Name: "ann"}})
	for range 30 {
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if _, err := w.gate.Refuse(t.Context(), &lockkeeper.Grant{}, gate.Put("a.rb", []byte("new")), errors.New("no grant")); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		list, err := w.gate.Rescue().List(t.Context())
		must(t, err)
		if len(list) == 0 {
			t.Fatal("each process dropped its own entry in favor of another's")
		}
		for _, e := range list {
			must(t, w.gate.Rescue().Drop(e.ID))
		}
	}
}

package gate_test

import (
	"errors"
	"testing"

	"lockkeeper"
	"lockkeeper/gate"
)

// A change does not land if another grant has since changed a file that it read, or a file in a
// directory that it read.
//
// shows: SW-38 PL-30
func TestCommitSeen(t *testing.T) {
	w := newWorld(t, map[string]string{"app/models/a.rb": "a", "app/models/concerns/auth.rb": "old", "app/views/v.erb": "v"}, gate.Options{})
	mine := w.hold("mine", "app/models/a.rb")
	theirs := w.hold("theirs", "app/models/concerns/auth.rb", "app/views/v.erb")
	first := w.commit(theirs, gate.Put("app/models/concerns/auth.rb", []byte("new")))
	change := []gate.Change{gate.Put("app/models/a.rb", []byte("tested with old"))}
	for _, read := range []lockkeeper.Target{{Path: "app/models/concerns/auth.rb", Kind: lockkeeper.File}, {Path: "app/models/concerns", Kind: lockkeeper.Dir}, {Path: ".", Kind: lockkeeper.Dir}} {
		_, err := w.gate.CommitSeen(t.Context(), &mine.Grant, change, gate.Seen{Seq: first.Seq - 1, Reads: []lockkeeper.Target{read}})
		var moved *lockkeeper.MovedError
		if !errors.As(err, &moved) || moved.Landing != first.Seq || moved.Holder != "theirs" {
			t.Fatalf("read %v: %v", read, err)
		}
	}
	w.want(map[string]string{"app/models/a.rb": "a", "app/models/concerns/auth.rb": "new", "app/views/v.erb": "v"})

	second := w.commit(theirs, gate.Put("app/views/v.erb", []byte("w")))
	seen := gate.Seen{Seq: first.Seq, Reads: []lockkeeper.Target{{Path: "app/models", Kind: lockkeeper.Dir}}}
	l, err := w.gate.CommitSeen(t.Context(), &mine.Grant, change, seen)
	if err != nil || l == nil || l.Seq < second.Seq {
		t.Fatalf("what it does not read stopped it: %v, %v", l, err)
	}
	change = []gate.Change{gate.Put("app/models/a.rb", []byte("again"))}
	if _, err := w.gate.CommitSeen(t.Context(), &mine.Grant, change, seen); err != nil {
		t.Fatalf("its own landing stopped it: %v", err)
	}
}

// A change that an agent made without a lock is kept and recorded, and does not land.
//
// shows: SW-75 SW-76 PL-83
func TestRefuse(t *testing.T) {
	w := newWorld(t, map[string]string{"app/models/a.rb": "a", "app/models/b.rb": "b"}, gate.Options{})
	g := w.hold("agent", "app/models/a.rb")
	why := w.gate.Check(t.Context(), &g.Grant, "app/models/b.rb")[0]
	e, err := w.gate.Refuse(t.Context(), &g.Grant, gate.Put("app/models/b.rb", []byte("uncovered")), why)
	if err != nil || e.ID == "" || e.Path != "app/models/b.rb" {
		t.Fatal(e, err)
	}
	body, err := w.gate.Rescue().Content(e.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if gaps := w.events(lockkeeper.EventGap); len(gaps) != 1 || gaps[0].Data["path"] != "app/models/b.rb" || gaps[0].Data["rescue"] != e.ID {
		t.Fatalf("%+v", gaps)
	}
	if _, err := w.gate.Refuse(t.Context(), &g.Grant, gate.Put("../outside", []byte("x")), errors.New("outside")); err != nil {
		t.Fatal(err)
	}
	w.want(map[string]string{"app/models/a.rb": "a", "app/models/b.rb": "b"})
}

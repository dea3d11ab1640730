package acts_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/rescue"
)

const (
	unit  = "blog/posts"
	model = "app/models/post.rb"
	other = "app/models/other.rb"
)

// landed lands contents of files one after the other, as the landings of batch b1.
func (o *office) landed(paths ...string) (landings []uint64) {
	o.t.Helper()
	ctx, b := o.t.Context(), o.book()
	o.planned(unit, paths...)
	must(o.t, b.ApprovePlan(ctx, unit, "ann"))
	o.verified(unit, "b1", []flow.File{})
	g, err := o.app.Gate()
	must(o.t, err)
	hold := acts.Holding(o.app, lockkeeper.Actor{Name: unit + "/b1", Kind: lockkeeper.ActorHolder})
	must(o.t, hold(ctx, "the batch", paths, func(ctx context.Context, grant *lockkeeper.Grant) error {
		for _, path := range paths {
			l, err := g.Write(ctx, grant, path, []byte("made by b1\n"))
			if err != nil {
				return err
			}
			landings = append(landings, l.Seq)
		}
		return nil
	}), b.PutLanded(ctx, unit, "b1", flow.Landed{Landings: landings, Grant: "g", Files: []flow.File{}, At: time.Now().UTC()}))
	return landings
}

func (o *office) batch(id string) *progress.Batch {
	o.t.Helper()
	_, b, err := o.book().BatchOf(o.t.Context(), unit, id)
	must(o.t, err)
	return b
}

func (o *office) read(path string) string {
	text, err := os.ReadFile(filepath.Join(o.app.Root.Dir(), path))
	if err != nil {
		return ""
	}
	return string(text)
}

// Undoing the last landing of a batch marks the batch as undone. Undoing the undo removes
// the mark.
//
// shows: GP-18
func TestUndoByNumberIsKnownToTheBatch(t *testing.T) {
	o := newOffice(t, 0)
	ctx := t.Context()
	was := o.read(model)
	landings := o.landed(model, other)
	ann := person("ann")
	undo := func(seq uint64) *acts.Undone {
		t.Helper()
		undone, err := acts.UndoLanding(ctx, o.app, seq, acts.Changer{Actor: ann}, acts.Holding(o.app, ann))
		must(t, err)
		return undone
	}
	first := undo(landings[0])
	if b := first.Batch; b == nil || b.Name() != "blog/posts/b1" || b.Undone || !b.Partly || len(b.Left) != 1 || b.Left[0] != landings[1] {
		t.Fatalf("%+v", first.Batch)
	}
	if o.batch("b1").Landed.Undone != nil || o.read(model) != was {
		t.Error("all of it is undone")
	}
	second := undo(landings[1])
	if by := o.batch("b1").Landed.Undone; !second.Batch.Undone || by == nil || by.By != "ann" {
		t.Fatalf("%+v, undone by %+v", second.Batch, by)
	}
	_, err := o.decider("bob").UndoBatch(ctx, unit, "b1", acts.Holding(o.app, person("bob")))
	if lockkeeper.CodeOf(err) != lockkeeper.CodeRefused {
		t.Fatalf("%v", err)
	}
	wantText(t, err.Error(), "it was undone by ann at ", "lockkeeper decide redo blog/posts/b1 apply", "or, to restore it: lockkeeper undo ")

	back := undo(second.Landings[0].Seq) // an undo is a landing, too
	if back.Batch.Undone || o.batch("b1").Landed.Undone != nil || o.read(other) != "made by b1\n" {
		t.Fatalf("%+v", back.Batch)
	}
	all, err := o.decider("bob").UndoBatch(ctx, unit, "b1", acts.Holding(o.app, person("bob")))
	must(t, err)
	if len(all.Landings) != 1 || !all.Batch.Undone || o.batch("b1").Landed.Undone.By != "bob" || o.read(other) != "" {
		t.Errorf("%+v", all)
	}
}

// An agent undoes no landing of a batch, not even by undoing an undo, because that decides about the
// batch.
func TestUndoOfABatchIsNotForAgents(t *testing.T) {
	o := newOffice(t, 0)
	ctx := t.Context()
	landings := o.landed(model)
	agent, ann := lockkeeper.Actor{Name: "claude", Kind: lockkeeper.ActorAgent}, person("ann")
	refused := func(seq uint64) {
		t.Helper()
		_, err := acts.UndoLanding(ctx, o.app, seq, acts.Changer{Actor: agent}, acts.Holding(o.app, agent))
		if lockkeeper.CodeOf(err) != lockkeeper.CodeRefused || !strings.Contains(err.Error(), "blog/posts/b1") {
			t.Errorf("%v", err)
		}
	}
	refused(landings[0])
	if o.read(model) != "made by b1\n" || o.batch("b1").Landed.Undone != nil {
		t.Error("it was undone")
	}
	undone, err := acts.UndoLanding(ctx, o.app, landings[0], acts.Changer{Actor: ann}, acts.Holding(o.app, ann))
	must(t, err)
	refused(undone.Landings[0].Seq)
	if o.batch("b1").Landed.Undone == nil {
		t.Error("it is back")
	}
}

// An agent undoes and lands only what it wrote itself.
func TestAgentsChangeOnlyTheirOwn(t *testing.T) {
	o := newOffice(t, 0)
	ctx := t.Context()
	agent := lockkeeper.Actor{Name: "claude", Kind: lockkeeper.ActorAgent}
	hold := acts.Holding(o.app, agent)
	wrote := func(who string) acts.Changer {
		return acts.Changer{Actor: agent, Wrote: func(_ context.Context, _, holder string, _ time.Time) (bool, error) { return holder == who, nil }}
	}
	var l *lockkeeper.Landing
	must(t, acts.Holding(o.app, person("ann"))(ctx, "test", []string{other}, func(ctx context.Context, grant *lockkeeper.Grant) error {
		g, err := o.app.Gate()
		must(t, err)
		l, err = g.Write(ctx, grant, other, []byte("by ann\n"))
		return err
	}))
	e, err := o.app.Shelf().Put(ctx, rescue.Entry{Kind: rescue.Gap, Path: model, Mode: 0o644, Holder: "ann", Reason: "coverage: not declared"}, strings.NewReader("x\n"))
	must(t, err)
	for _, by := range []acts.Changer{{Actor: agent}, wrote("bob")} {
		_, undoing := acts.UndoLanding(ctx, o.app, l.Seq, by, hold)
		_, _, landing := acts.LandRescued(ctx, o.app, e.ID, acts.Landing{}, by, hold)
		for _, err := range []error{undoing, landing} {
			if lockkeeper.CodeOf(err) != lockkeeper.CodeRefused || !strings.Contains(err.Error(), "it is from ann") {
				t.Errorf("%v", err)
			}
		}
	}
	_, _, err = acts.LandRescued(ctx, o.app, e.ID, acts.Landing{}, wrote("ann"), hold)
	must(t, err)
	_, err = acts.UndoLanding(ctx, o.app, l.Seq, wrote("ann"), hold)
	must(t, err)
	if o.read(other) != "" || o.read(model) != "x\n" {
		t.Errorf("%q %q", o.read(other), o.read(model))
	}
}

// Undoing a landing without a batch mentions no batch. Undoing a batch without a landing is
// refused.
//
// shows: GP-18
func TestUndoOfWhatIsNoBatch(t *testing.T) {
	o := newOffice(t, 0)
	ctx := t.Context()
	o.planned(unit, model)
	ann := person("ann")
	hold := acts.Holding(o.app, ann)
	g, err := o.app.Gate()
	must(t, err)
	var l *lockkeeper.Landing
	must(t, hold(ctx, "by hand", []string{model}, func(ctx context.Context, grant *lockkeeper.Grant) (err error) {
		l, err = g.Write(ctx, grant, model, []byte("by hand\n"))
		return err
	}))
	undone, err := acts.UndoLanding(ctx, o.app, l.Seq, acts.Changer{Actor: ann}, hold)
	must(t, err)
	if undone.Batch != nil || undone.Of.Holder != "ann" {
		t.Errorf("%+v", undone)
	}
	_, err = o.decider("ann").UndoBatch(ctx, unit, "b1", hold)
	if lockkeeper.CodeOf(err) != lockkeeper.CodeRefused || !strings.Contains(err.Error(), "lockkeeper audit --kind landed") {
		t.Errorf("%v", err)
	}
	if _, err := o.decider("ann").UndoBatch(ctx, unit, "b9", hold); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
		t.Errorf("%v", err)
	}
}

// If a file of the batch is locked, nothing is undone.
//
// shows: GP-18
func TestUndoIsBlockedByAHolder(t *testing.T) {
	o := newOffice(t, 0)
	ctx := t.Context()
	o.landed(model)
	must(t, acts.Holding(o.app, person("bob"))(ctx, "busy", []string{model}, func(ctx context.Context, _ *lockkeeper.Grant) error {
		_, err := o.decider("ann").UndoBatch(ctx, unit, "b1", acts.Holding(o.app, person("ann")))
		var blocked *lockkeeper.BlockedError
		if !errors.As(err, &blocked) || blocked.Conflicts[0].Holder != "bob" {
			t.Errorf("%v", err)
		}
		return nil
	}))
	if o.batch("b1").Landed.Undone != nil {
		t.Error("it is undone")
	}
}

// The refusal of a path outside the allowlist names the allowlist and no holder.
//
// shows: GP-18
func TestLandRescuedOutsideTheAllowlist(t *testing.T) {
	o := newOffice(t, 0)
	ctx := t.Context()
	e, err := o.app.Shelf().Put(ctx, rescue.Entry{Kind: rescue.Gap, Path: "lib/tasks/a.rake", Holder: "blog/posts/b1", Reason: "allowlist: it lies outside"}, strings.NewReader("x\n"))
	must(t, err)
	_, _, err = acts.LandRescued(ctx, o.app, e.ID, acts.Landing{}, acts.Changer{Actor: person("ann")}, acts.Holding(o.app, person("ann")))
	var v *lockkeeper.LockViolationError
	if !errors.As(err, &v) || v.Check != "allowlist" || v.HeldBy != nil {
		t.Fatalf("%v", err)
	}
	wantText(t, err.Error(), "it stays kept: lockkeeper rescue show "+e.ID)

	e, err = o.app.Shelf().Put(ctx, rescue.Entry{Kind: rescue.Gap, Path: other, Mode: 0o644, Holder: "blog/posts/b1", Reason: "coverage: not declared"}, strings.NewReader("x\n"))
	must(t, err)
	got, l, err := acts.LandRescued(ctx, o.app, e.ID, acts.Landing{}, acts.Changer{Actor: person("ann")}, acts.Holding(o.app, person("ann")))
	must(t, err)
	if l == nil || got.Path != other || o.read(other) != "x\n" {
		t.Errorf("%+v %+v", got, l)
	}
}

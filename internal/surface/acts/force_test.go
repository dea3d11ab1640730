package acts_test

import (
	"errors"
	"strings"
	"testing"

	"lockkeeper"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/lock"
)

// held locks a file for a holder.
func (o *office) held(holder, policy, path string) *lock.RequestInfo {
	o.t.Helper()
	g, err := o.app.Locks.TryAcquire(o.t.Context(), lockkeeper.Request{Holder: holder, Policy: policy,
		Locks: []lockkeeper.Lock{{Target: lockkeeper.Target{Path: path, Kind: lockkeeper.File}, Mode: lockkeeper.Write}}})
	must(o.t, err)
	e, err := o.app.Locks.Request(o.t.Context(), g.ID)
	must(o.t, err)
	return e
}

// holders returns the names of all holders.
func (o *office) holders() (names []string) {
	o.t.Helper()
	grants, err := o.app.Locks.ActiveGrants(o.t.Context())
	must(o.t, err)
	for _, g := range grants {
		names = append(names, g.Holder)
	}
	return names
}

// A forced release needs the name of the holder and a reason, and agents cannot do it.
//
// shows: CF-14
func TestForceRelease(t *testing.T) {
	o := newOffice(t, 0)
	ctx, e := t.Context(), o.held("otter", "", model)
	var other *lockkeeper.RefusedError
	if err := acts.ForceRelease(ctx, o.app, e, "heron", "it hangs", person("ann")); !errors.As(err, &other) || !strings.Contains(other.Reason, "held by otter") || lockkeeper.CodeOf(err) != lockkeeper.CodeRefused {
		t.Errorf("%v", err)
	}
	if err := acts.ForceRelease(ctx, o.app, e, "otter", " ", person("ann")); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
		t.Errorf("%v", err)
	}
	if err := acts.ForceRelease(ctx, o.app, e, "otter", "it hangs", lockkeeper.Actor{Name: "heron", Kind: lockkeeper.ActorHolder}); lockkeeper.CodeOf(err) != lockkeeper.CodeRefused {
		t.Errorf("%v", err)
	}
	if names := o.holders(); len(names) != 1 {
		t.Fatalf("held by %v", names)
	}
	must(t, acts.ForceRelease(ctx, o.app, e, "otter", "it hangs", person("ann")))
	if names := o.holders(); len(names) != 0 {
		t.Errorf("held by %v", names)
	}
}

// Clear releases all grants, except those whose policy needs proof that they are abandoned.
// If a grant was acquired since the person saw the list, it releases none.
func TestClear(t *testing.T) {
	o := newOffice(t, 0)
	ctx := t.Context()
	first := o.held("otter", "", model)
	o.held("heron", "dal", other)
	if _, err := acts.ClearShown(ctx, o.app, first.Fence, "power cut", person("ann")); lockkeeper.CodeOf(err) != lockkeeper.CodeRefused {
		t.Errorf("%v", err)
	}
	if names := o.holders(); len(names) != 2 {
		t.Fatalf("held by %v", names)
	}
	last, err := o.app.Locks.ActiveGrants(ctx)
	must(t, err)
	cleared, err := acts.ClearShown(ctx, o.app, last[1].Fence, "power cut", person("ann"))
	must(t, err)
	if len(cleared.Freed) != 1 || cleared.Freed[0] != first.ID || len(cleared.Kept) != 1 || cleared.Kept[0].Holder != "heron" || lockkeeper.CodeOf(cleared.Kept[0].Err) != lockkeeper.CodeRefused {
		t.Errorf("%+v", cleared)
	}
	wantText(t, cleared.Kept[0].Err.Error(), "stale and unclaimed")
}

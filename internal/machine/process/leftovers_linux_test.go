package process

import (
	"errors"
	"strconv"
	"testing"

	"lockkeeper"
)

// shows: SW-71
func TestKilledSupervisorLeavesNothing(t *testing.T) {
	h := newHost(t)
	c := launch(t, nil, helperArgv("supervise", append([]string{ownGrant("g-killed")}, helperArgv("tree")...)...)...)
	supervisor := identify(t, c.cmd.Process.Pid)
	var tree []lockkeeper.Process
	for _, label := range []string{"near", "barenear", "far", "barefar", "ready"} {
		tree = append(tree, identify(t, c.next(label)))
	}
	if err := h.EndLeftovers(t.Context(), supervisor, ownGrant("g-killed")); lockkeeper.CodeOf(err) != lockkeeper.CodeRefused {
		t.Fatalf("ended the tree of a living holder: %v", err)
	}
	c.cmd.Process.Kill()
	wantGone(t, h, append(tree, supervisor)...) // their keeper ended them
	for range 2 {
		if err := h.EndLeftovers(t.Context(), supervisor, ownGrant("g-killed")); err != nil {
			t.Error(err)
		}
	}
}

// A record of an earlier version names no keeper. Marked processes and their process group are
// still found.
func TestRecordWithoutKeeper(t *testing.T) {
	h := newHost(t)
	c := launch(t, []string{GrantVariable + "=" + ownGrant("g-old")}, helperArgv("tree")...)
	var tree []lockkeeper.Process
	for _, label := range []string{"near", "barenear", "far", "barefar", "ready"} {
		tree = append(tree, identify(t, c.next(label)))
	}
	p := dead(t, h)
	p.Group = c.cmd.Process.Pid
	if err := h.EndLeftovers(t.Context(), p, ownGrant("g-old")); err != nil {
		t.Fatal(err)
	}
	for _, q := range tree {
		wantLife(t, h, q, lockkeeper.ProcessDead)
	}
}

func dead(t *testing.T, h *Host) lockkeeper.Process {
	t.Helper()
	c := launch(t, nil, helperArgv("sleep")...)
	p := identify(t, c.next("ready"))
	c.cmd.Process.Kill()
	wantGone(t, h, p)
	return p
}

func TestReusedGroupIsSpared(t *testing.T) {
	h := newHost(t)
	p := dead(t, h)
	stranger := launch(t, nil, helperArgv("sleep")...)
	other := launch(t, []string{GrantVariable + "=" + ownGrant("g-10")}, helperArgv("sleep")...)
	p.Group = stranger.next("ready")
	otherID := identify(t, other.next("ready"))
	if err := h.EndLeftovers(t.Context(), p, ownGrant("g-1")); err != nil {
		t.Fatal(err)
	}
	wantLife(t, h, identify(t, p.Group), lockkeeper.ProcessAlive)
	wantLife(t, h, otherID, lockkeeper.ProcessAlive) // a longer id with the same prefix
}

func TestCallerIsSpared(t *testing.T) {
	h := newHost(t)
	p := dead(t, h)
	c := launch(t, []string{GrantVariable + "=" + ownGrant("g-self")},
		helperArgv("recover", strconv.Itoa(p.PID), strconv.FormatUint(p.Start, 10), ownGrant("g-self"))...)
	c.expect("spared itself")
	if err := c.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

func TestEndLeftoversRefusesWhatItCannotSee(t *testing.T) {
	h := newHost(t)
	p := dead(t, h)
	elsewhere := p
	elsewhere.PIDNS = "pid:[1]"
	var refused *lockkeeper.RefusedError
	if err := h.EndLeftovers(t.Context(), elsewhere, "g"); !errors.As(err, &refused) {
		t.Errorf("other namespace: %v", err)
	}
	if err := h.EndLeftovers(t.Context(), p, ""); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
		t.Errorf("no grant: %v", err)
	}
}

// A process under nested grants is found by either grant.
func TestNestedGrantsAreBothFound(t *testing.T) {
	outer := Command{Grant: ownGrant("g-outer")}
	inner := Command{Grant: ownGrant("g-inner"), Env: outer.environment()}
	for _, grant := range []string{ownGrant("g-outer"), ownGrant("g-inner")} {
		h := newHost(t)
		c := launch(t, inner.environment(), helperArgv("sleep")...)
		work := identify(t, c.next("ready"))
		if err := h.EndLeftovers(t.Context(), dead(t, h), grant); err != nil {
			t.Fatal(err)
		}
		wantLife(t, h, work, lockkeeper.ProcessDead)
	}
}

// EndWork ends the work of a living holder, but not the holder.
//
// shows: GP-15
func TestEndWorkOfALivingHolder(t *testing.T) {
	h := newHost(t)
	c := launch(t, nil, helperArgv("supervise", append([]string{ownGrant("g-late")}, helperArgv("sleep")...)...)...)
	supervisor := identify(t, c.cmd.Process.Pid)
	work := identify(t, c.next("ready"))
	supervisor.Group = work.PID
	if err := h.EndWork(t.Context(), supervisor, ownGrant("g-late")); err != nil {
		t.Fatal(err)
	}
	wantLife(t, h, work, lockkeeper.ProcessDead)
}

// A process of the work that exits right after the walk counts as found, so that another walk
// follows. It may have forked a process that is not in the table.
func TestWorkThatExitsAfterTheWalk(t *testing.T) {
	h := newHost(t)
	c := launch(t, []string{GrantVariable + "=" + ownGrant("g-brief")}, helperArgv("sleep")...)
	brief := identify(t, c.next("ready"))
	w := workOf(dead(t, h), ownGrant("g-brief"))
	seen, err := readTable(w.mark)
	if err != nil {
		t.Fatal(err)
	}
	c.cmd.Process.Kill()
	wantGone(t, h, brief)
	if found := w.find(seen); !found[brief.PID] {
		t.Errorf("found %v, want process %d", found, brief.PID)
	}
}

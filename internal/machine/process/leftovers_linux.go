package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"lockkeeper"
)

// EndLeftovers kills what is left of the grant of a dead holder and returns when
// it is gone; the package comment says what belongs to a grant. It refuses while
// the holder lives or cannot be judged, and returns a *LeftoversError that names
// what would not go, and what may belong to the grant and is not killed because nothing
// proves it. ctx bounds the waiting: without a deadline it waits as long
// as the kernel needs.
func (h *Host) EndLeftovers(ctx context.Context, p lockkeeper.Process, grantID string) error {
	act := "ending the processes of grant " + grantID
	if grantID == "" {
		return &lockkeeper.InputError{Field: "grant", Reason: "empty"}
	}
	switch h.Liveness(p) {
	case lockkeeper.ProcessAlive:
		return &lockkeeper.RefusedError{Act: act, Reason: fmt.Sprintf("its holder, pid %d on %s, is alive", p.PID, p.Host)}
	case lockkeeper.ProcessUnknown:
		return &lockkeeper.RefusedError{Act: act,
			Reason: fmt.Sprintf("its holder, pid %d on %s (%s), cannot be seen from here", p.PID, p.Host, p.PIDNS),
			Next:   "run this on that machine, in that PID namespace"}
	}
	if !h.sees(p) {
		return h.forget(p) // it is dead by a proof that nothing is left
	}
	w := workOf(p, grantID)
	if err := w.end(ctx); err != nil {
		return err
	}
	if w.Keeper != 0 && w.cgroup == nil && h.shown(p) != lockkeeper.ProcessDead { // else nothing can be left
		if err := w.refuseLowered(); err != nil {
			return err
		}
	}
	return errors.Join(w.clear(), h.forget(p))
}

// EndWork kills what a living holder runs under a grant, and not the holder
// itself, and returns when it is gone. What cannot be seen from here it ends by its
// control group, and refuses where there is none.
func (h *Host) EndWork(ctx context.Context, p lockkeeper.Process, grantID string) error {
	if grantID == "" {
		return &lockkeeper.InputError{Field: "grant", Reason: "empty"}
	}
	if h.Liveness(p) != lockkeeper.ProcessAlive {
		return h.EndLeftovers(ctx, p, grantID)
	}
	w := workOf(p, grantID)
	if h.sees(p) {
		return w.end(ctx)
	}
	if w.cgroup != nil && w.cgroup.has("cgroup.kill") {
		return w.cgroup.close(ctx)
	}
	return &lockkeeper.RefusedError{Act: "ending the processes of grant " + grantID,
		Reason: fmt.Sprintf("its holder, pid %d on %s (%s), is alive and cannot be seen from here", p.PID, p.Host, p.PIDNS),
		Next:   "end it in its container, or run this there"}
}

// work is what a holder runs, or has left, under a grant.
type work struct {
	lockkeeper.Process
	grantID     string
	cgroup      *cgroup // nil: none
	spareKeeper bool
}

func workOf(p lockkeeper.Process, grantID string) *work {
	w := &work{Process: p, grantID: grantID, spareKeeper: true}
	if p.Cgroup != "" {
		if c, err := cgroupAt(p.Cgroup); err == nil {
			w.cgroup = c
		}
	}
	return w
}

// end kills the work and returns when it is gone. The keeper comes last: while it lives,
// orphans of the command become its children. It is killed even if nothing is below it,
// because its supervisor may have asked it to start a command that it has not started yet.
func (w *work) end(ctx context.Context) error {
	for _, w.spareKeeper = range []bool{true, false} {
		if err := end(ctx, w.grantID, w.cgroup, w.mark, w.find); err != nil {
			return err
		}
	}
	return nil
}

// mark reads what ties a process to the work in addition to its parents: the keeper's brand,
// and the mark in its environment.
func (w *work) mark(pid int) mark {
	if w.Keeper != 0 && brandOf(w.Group, w.Keeper).on(pid) {
		return marked
	}
	return markOf(pid, w.grantID)
}

// find finds the processes of the work in a table that was read with their marks. The
// keeper has no brand until it has started up, so it is known by its identity. The holder
// is not part of the work.
func (w *work) find(t table) map[int]bool {
	set := map[int]bool{}
	kept := w.Keeper != 0 && t[w.Group].start == w.Keeper
	for pid, s := range t {
		if !s.dead() && (s.mark == marked || kept && (pid == w.Group || s.parent == w.Group)) {
			set[pid] = true
		}
	}
	if kept && w.spareKeeper {
		delete(set, w.Group)
	}
	if w.Keeper == 0 {
		w.addGroup(t, set)
	}
	if t[w.PID].start == w.Start {
		delete(set, w.PID)
	}
	return set
}

// clear removes what the work leaves in addition to processes.
func (w *work) clear() error {
	if w.cgroup == nil {
		return nil
	}
	return w.cgroup.remove()
}

// addGroup adds the process group of a command without a keeper, if one of its
// members carries the mark. When none does, because all of them hide their
// environment, the group counts as well: its number can have gone to strangers,
// but strangers can be read.
func (w *work) addGroup(t table, set map[int]bool) {
	if w.Group <= 0 {
		return
	}
	for _, s := range t {
		if s.group == w.Group && !s.dead() && s.mark != unmarked {
			for pid, s := range t {
				if s.group == w.Group {
					set[pid] = true
				}
			}
			return
		}
	}
}

// end kills what is in a control group, if there is one, and the found processes
// with their descendants, waits until they are gone, and looks again until a walk
// finds none: they may fork meanwhile. A nil markOf leaves the marks unread.
func end(ctx context.Context, grantID string, c *cgroup, markOf func(pid int) mark, find func(table) map[int]bool) error {
	for {
		if c != nil && !c.contains() {
			if err := c.empty(ctx); err != nil {
				return fmt.Errorf("end the processes of grant %s in control group %s: %w", grantID, c.path, err)
			}
		}
		t, err := readTable(markOf)
		if err != nil {
			return fmt.Errorf("look for processes of grant %s: %w", grantID, err)
		}
		victims := find(t)
		t.below(victims)
		spared := t.ancestors(os.Getpid())
		spared[1] = true

		found := false
		var left []Leftover
		var killed []*handle
		var names []stat
		for _, pid := range keys(victims) {
			s := t[pid]
			if s.dead() {
				continue
			}
			found = true // even if it is gone by now: it may have forked before
			if spared[pid] {
				left = append(left, Leftover{pid, s.name, "it is the caller or an ancestor of it"})
				continue
			}
			h, err := kill(s)
			if errors.Is(err, errGone) {
				continue
			}
			if err != nil {
				left = append(left, Leftover{pid, s.name, err.Error()})
				continue
			}
			killed, names = append(killed, h), append(names, s)
		}
		for i, h := range killed {
			if err := h.wait(ctx); err != nil {
				left = append(left, Leftover{names[i].pid, names[i].name, "not gone after SIGKILL: " + err.Error()})
			}
			h.close()
		}
		if len(left) > 0 {
			return &LeftoversError{GrantID: grantID, Left: left}
		}
		if !found {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("end the processes of grant %s: new ones are started all the time: %w", grantID, context.Cause(ctx))
		}
	}
}

func kill(s stat) (*handle, error) {
	h, err := openHandle(s.pid, s.start)
	if err != nil {
		return nil, err
	}
	if err := h.signal(unix.SIGKILL); err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

// keys lists a set in rising order, so that what is done and said is the same
// each time.
func keys(set map[int]bool) []int {
	list := make([]int, 0, len(set))
	for pid := range set {
		list = append(list, pid)
	}
	slices.Sort(list)
	return list
}

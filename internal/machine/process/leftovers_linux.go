package process

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"lockkeeper"
)

// EndLeftovers kills the remaining processes of a dead holder's grant and returns when they are
// gone. The package comment says which processes belong to a grant. It refuses if the holder is
// alive or its liveness is unknown. It returns a *LeftoversError that names the processes that did
// not end. It also names processes that may belong to the grant, and were not killed because
// nothing proves it. ctx bounds the wait.
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
	w := workOf(p, grantID)
	if !h.sees(p) { // the proof that the holder is dead also proves that no process is left, except out of sight
		if w.cgroup != nil && w.cgroup.has("cgroup.kill") {
			if err := w.cgroup.close(ctx); err != nil {
				return err
			}
		}
		return h.forget(p)
	}
	if err := w.end(ctx); err != nil {
		return err
	}
	if w.Keeper != 0 && w.cgroup == nil && h.shown(p) != lockkeeper.ProcessDead { // otherwise no process can be left
		if err := w.refuseLowered(); err != nil {
			return err
		}
	}
	return errors.Join(w.cgroup.remove(), h.forget(p))
}

// EndWork kills the processes that a living holder runs under a grant, but not the holder,
// and returns when they are gone. It ends processes in another PID namespace through their
// control group, and refuses if there is none.
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

// work describes the processes that a holder runs, or has left, under a grant.
type work struct {
	lockkeeper.Process
	grantID     string
	cgroup      *cgroup // nil: none
	spareKeeper bool
}

func workOf(p lockkeeper.Process, grantID string) *work {
	w := &work{Process: p, grantID: grantID, spareKeeper: true}
	if p.Cgroup != "" {
		w.cgroup, _ = cgroupAt(p.Cgroup) // nil if the group cannot be found
	}
	return w
}

// end kills the work and returns when it is gone. The keeper comes last: while it lives,
// orphans of the command become its children. It is killed even if nothing is below it.
// Its supervisor may have asked it to start a command that it has not started yet.
func (w *work) end(ctx context.Context) error {
	for _, w.spareKeeper = range []bool{true, false} {
		if err := end(ctx, w.grantID, w.cgroup, w.mark, w.find); err != nil {
			return err
		}
	}
	return nil
}

// mark reports whether a process carries the keeper's limit mark, or the grant's mark in its
// environment.
func (w *work) mark(pid int) mark {
	if w.Keeper != 0 && limitMarkOf(w.Group, w.Keeper).on(pid) {
		return marked
	}
	return markOf(pid, w.grantID)
}

// find finds the processes of the work in a table that was read with their marks. The
// keeper has no limit mark until it has started up, so it is known by its identity. The holder
// is not part of the work.
func (w *work) find(t table) map[int]bool {
	set := map[int]bool{}
	alive := w.Keeper != 0 && t[w.Group].start == w.Keeper
	for pid, s := range t {
		if !s.dead() && (s.mark == marked || alive && (pid == w.Group || s.parent == w.Group)) {
			set[pid] = true
		}
	}
	if alive && w.spareKeeper {
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

// addGroup adds the process group of a command without a keeper if one member carries the mark, or
// if all members hide their environment. The number of the group may have been reused, but
// processes of other origin do not hide their environment.
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

// end kills the processes in a control group, if there is one, and the found processes
// with their descendants. It waits until they are gone and repeats until it finds none,
// because they may fork meanwhile. If markOf is nil, marks are not read.
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
		for _, pid := range slices.Sorted(maps.Keys(victims)) {
			s := t[pid]
			if s.dead() {
				continue
			}
			found = true // a process that is gone by now may have forked before
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
			return fmt.Errorf("end the processes of grant %s: new ones keep starting: %w", grantID, context.Cause(ctx))
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

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
// what would not go. ctx bounds the waiting: without a deadline it waits as long
// as the kernel needs.
func (h *Host) EndLeftovers(ctx context.Context, p lockkeeper.Process, grantID string) error {
	act := "ending the processes of grant " + grantID
	if grantID == "" {
		return &lockkeeper.InputError{Field: "grant", Reason: "empty"}
	}
	switch h.Life(p) {
	case lockkeeper.LifeAlive:
		return &lockkeeper.RefusedError{Act: act, Reason: fmt.Sprintf("its holder, pid %d on %s, is alive", p.PID, p.Host)}
	case lockkeeper.LifeUnknown:
		return &lockkeeper.RefusedError{Act: act,
			Reason: fmt.Sprintf("its holder, pid %d on %s (%s), cannot be seen from here", p.PID, p.Host, p.PIDNS),
			Next:   "run this on that machine, in that PID namespace"}
	}
	if p.Boot != h.self.Boot {
		return nil // nothing survives a restart of the machine
	}
	return end(ctx, grantID, func(t table) map[int]bool { return workOf(t, p.Group, grantID) })
}

// EndWork kills what a living holder runs under a grant, and not the holder
// itself, and returns when it is gone. It refuses where the holder cannot be
// seen.
func (h *Host) EndWork(ctx context.Context, p lockkeeper.Process, grantID string) error {
	if grantID == "" {
		return &lockkeeper.InputError{Field: "grant", Reason: "empty"}
	}
	if h.Life(p) != lockkeeper.LifeAlive {
		return h.EndLeftovers(ctx, p, grantID)
	}
	return end(ctx, grantID, func(t table) map[int]bool {
		set := workOf(t, p.Group, grantID)
		delete(set, p.PID)
		return set
	})
}

// workOf finds what runs under a grant: whatever carries its mark, and the
// process group that was recorded, if one of its members carries the mark. When
// none does, because all of them hide their environment, the group counts as
// well: its number can have gone to strangers, but strangers can be read.
func workOf(t table, group int, grantID string) map[int]bool {
	set := markedIn(t, grantID)
	if group <= 0 {
		return set
	}
	for pid, s := range t {
		if s.group == group && !s.dead() && (set[pid] || markOf(pid, grantID) == unreadable) {
			addGroup(t, group, set)
			break
		}
	}
	return set
}

func markedIn(t table, grantID string) map[int]bool {
	set := map[int]bool{}
	for pid, s := range t {
		if !s.dead() && markOf(pid, grantID) == marked {
			set[pid] = true
		}
	}
	return set
}

func addGroup(t table, group int, set map[int]bool) {
	for pid, s := range t {
		if s.group == group {
			set[pid] = true
		}
	}
}

// end kills the found processes and their descendants, waits until they are
// gone, and looks again until a walk finds none: they may fork meanwhile.
func end(ctx context.Context, grantID string, find func(table) map[int]bool) error {
	for {
		t, err := readTable()
		if err != nil {
			return fmt.Errorf("look for processes of grant %s: %w", grantID, err)
		}
		victims := find(t)
		t.below(victims)
		spared := t.ancestors(os.Getpid())
		spared[1] = true

		var left []Leftover
		var killed []*handle
		var names []stat
		for _, pid := range keys(victims) {
			s := t[pid]
			if s.dead() {
				continue
			}
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
		if len(killed) == 0 {
			return nil
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

package view

import (
	"fmt"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/store"
)

// EventKinds returns every kind of event.
func EventKinds() []lockkeeper.EventKind {
	return []lockkeeper.EventKind{
		lockkeeper.EventAcquired, lockkeeper.EventDenied, lockkeeper.EventWaiting, lockkeeper.EventWithdrawn, lockkeeper.EventTimedOut,
		lockkeeper.EventRenewFailed, lockkeeper.EventUpgraded, lockkeeper.EventUpgradeDenied, lockkeeper.EventExtended, lockkeeper.EventExtendDenied,
		lockkeeper.EventReleased, lockkeeper.EventExpired, lockkeeper.EventRecovered, lockkeeper.EventForceReleased, lockkeeper.EventRecoverFailed,
		lockkeeper.EventRevoking, lockkeeper.EventLanded, lockkeeper.EventUndone, lockkeeper.EventGap, lockkeeper.EventFinished,
		lockkeeper.EventQueued, lockkeeper.EventBlocked, lockkeeper.EventEscalated, lockkeeper.EventFailed, lockkeeper.EventRequeued,
		lockkeeper.EventCleared, lockkeeper.EventRefused, lockkeeper.EventEpoch, lockkeeper.EventDecided,
	}
}

// Concerns reports whether an event is about a target.
func Concerns(ev lockkeeper.Event, t lockkeeper.Target) bool {
	return slices.ContainsFunc(ev.Locks, func(l lockkeeper.Lock) bool { return l.Overlaps(t) }) ||
		ev.Kind == lockkeeper.EventGap && t.Overlaps(lockkeeper.Target{Path: ev.Data["path"], Kind: lockkeeper.File})
}

// eventName returns the subject of an event: the item's name, the holder, or the actor.
func eventName(ev lockkeeper.Event) string {
	switch {
	case ev.Kind == lockkeeper.EventQueued:
		return ev.Holder
	case ev.Data["workflow"] != "":
		return ev.Data["workflow"]
	case ev.Holder != "":
		return ev.Holder
	}
	return ev.Actor.Name
}

// GapText returns the path of a refused write, if the event has one, and where its content
// is kept.
func GapText(ev lockkeeper.Event) string {
	words := "not kept"
	if id := ev.Data["rescue"]; id != "" {
		words = "kept as " + id
	}
	if path := ev.Data["path"]; path != "" {
		words = "write " + path + ", " + words
	}
	return words
}

// pathsInLine limits the paths and holders that a line names.
const pathsInLine = 3

// lineOf describes an event.
func lineOf(ev lockkeeper.Event, known names) Line {
	line := Line{Event: ev, Item: ItemID(ev), What: strings.ReplaceAll(string(ev.Kind), "_", " ")}
	line.Name = eventName(ev)
	if line.Item == "" && known[ev.Holder] != "" {
		line.Item = ev.Holder
	}
	if name := known.of(ev.Holder, line.Item); name != "" && ev.Data["workflow"] == "" {
		line.Name = name
	}
	parts := []string{line.What}
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if len(ev.Locks) > 0 {
		var locks []string
		for _, l := range ev.Locks {
			locks = append(locks, l.String())
		}
		add("%s", few(locks))
	}
	switch ev.Kind {
	case lockkeeper.EventLanded:
		add("landing %d", ev.Seq)
		if undoes := ev.Data["undoes"]; undoes != "" {
			add("which undoes landing %s", undoes)
		}
	case lockkeeper.EventUndone, lockkeeper.EventFinished:
		if landing := ev.Data["landing"]; landing != "" {
			add("landing %s", landing)
		}
	case lockkeeper.EventGap:
		add("%s", GapText(ev))
	}
	if len(ev.Conflicts) > 0 {
		var holders []string
		for _, c := range ev.Conflicts {
			if name := known.of(c.Holder, c.Holder); !slices.Contains(holders, name) {
				holders = append(holders, name)
			}
		}
		add("because of %s", few(holders))
	}
	if ev.Actor.Kind != lockkeeper.ActorHolder && ev.Actor.Name != "" {
		add("by %s (%s)", ev.Actor.Name, ev.Actor.Kind)
	}
	if ev.Reason != "" {
		parts = append(parts, ev.Reason)
	}
	line.Text = strings.Join(parts, ", ")
	return line
}

// few joins the first elements of a list and counts the rest.
func few(list []string) string {
	if len(list) > pathsInLine {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:pathsInLine], ", "), len(list)-pathsInLine)
	}
	return strings.Join(list, ", ")
}

// namesIn looks up the names of the items and holders in events.
func namesIn(r store.Reader, events []lockkeeper.Event) (names, error) {
	n := names{}
	for _, ev := range events {
		ids := []string{ItemID(ev), ev.Holder}
		for _, c := range ev.Conflicts {
			ids = append(ids, c.Holder)
		}
		if err := n.look(r, ids...); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// linesOf describes events.
func linesOf(r store.Reader, events []lockkeeper.Event) ([]Line, error) {
	known, err := namesIn(r, events)
	lines := []Line{}
	for _, ev := range events {
		lines = append(lines, lineOf(ev, known))
	}
	return lines, err
}

package top

import (
	"fmt"

	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/view"
)

// pathsShown is how many paths of a grant one line names.
const pathsShown = 3

// lockRows lists who holds and who waits.
func (m *model) lockRows() (list []row) {
	v := m.seen.locks
	if v == nil {
		return []row{{text: paint(dim, "reading …")}}
	}
	section := func(name string, some []view.LockStatus, tone style) {
		if len(some) == 0 {
			return
		}
		list = append(list, title(fmt.Sprintf("%s (%d)", name, len(some))))
		for _, l := range some {
			list = append(list, m.lockRow(l, tone))
		}
	}
	if s := m.seen.status; s != nil && len(s.Sessions) > 0 {
		list = append(list, title(fmt.Sprintf("At work (%d)", len(s.Sessions))))
		for _, o := range s.Sessions {
			list = append(list, m.sessionRow(o))
		}
	}
	section("Past their lease", v.Stale, bad)
	section("Waiting", v.Waiting, attend)
	if len(v.Queued) > 0 {
		list = append(list, title(fmt.Sprintf("Queued behind locks (%d)", len(v.Queued))))
		for _, q := range v.Queued {
			text := oneLine(q.Name) + " " + paint(dim, plain(safe(q.Phase)))
			for _, b := range q.Behind {
				text += " ← " + oneLine(b.Name) + " " + paint(dim, safe(b.Path))
			}
			list = append(list, row{id: "item " + q.Item, text: text, note: ago(q.Since, m.clock()), goes: m.opensItem(q.Item)})
		}
	}
	section("Held", v.Held, noStyle)
	if v.More > 0 {
		list = append(list, row{text: paint(dim, fmt.Sprintf("%d more: lockkeeper status", v.More))})
	}
	if list == nil {
		list = append(list, row{text: paint(dim, "No locks are held.")})
	}
	return list
}

func (m *model) lockRow(l view.LockStatus, tone style) row {
	paths := term.JoinFew(l.Locks, pathsShown, func(p view.PathLock) string { return p.Mode.String() + " " + safe(p.Path) })
	text := paint(tone, column(middle(oneLine(l.Name), 28), 28)) + "  " + paths
	if l.Reason != "" {
		text += "  " + paint(dim, oneLine(l.Reason))
	}
	return row{id: "grant " + l.ID, text: text, note: ago(l.AcquiredAt, m.clock()), goes: m.opensItem(l.Item)}
}

func (m *model) sessionRow(s view.OpenSession) row {
	holds := "holds nothing"
	if len(s.Holds) > 0 {
		holds = term.JoinFew(s.Holds, pathsShown, safe)
	}
	text := column(oneLine(s.Callsign), 16) + " " + column(safe(s.Agent), 12) + " " + column(safe(s.TTY), 8) + " " + holds
	if s.About != "" {
		text += "  " + paint(dim, oneLine(s.About))
	}
	return row{id: "session " + s.ID, text: text, note: ago(s.Seen, m.clock())}
}

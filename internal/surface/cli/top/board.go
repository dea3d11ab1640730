package top

import (
	"strings"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/surface/view"
)

// sign returns the sign of a cell of the board.
func sign(mark view.Mark) string {
	switch mark {
	case view.MarkDone:
		return paint(good, "■")
	case view.MarkActive:
		return paint(good, "▶")
	case view.MarkQueued:
		return "○"
	case view.MarkPerson:
		return paint(attend, "?")
	case view.MarkFailed:
		return paint(bad, "✗")
	case view.MarkWaiting:
		return "◌"
	}
	return paint(dim, "·")
}

// boardRows lists the units with a mark for each phase, and the batches or tasks of each.
func (m *model) boardRows() (list []row) {
	b := m.seen.board
	if b == nil {
		return []row{{text: paint(dim, "reading …")}}
	}
	wide := 10
	for _, u := range b.Units {
		wide = max(wide, len([]rune(u.Name)))
		for _, t := range u.Batches {
			wide = max(wide, len([]rune(t.ID))+2)
		}
	}
	wide = min(wide, max(12, m.width/3))
	for _, u := range b.Units {
		cells := ""
		for _, c := range u.Cells {
			cells += sign(c)
		}
		r := row{id: "unit " + u.Name, text: column(middle(oneLine(u.Name), wide), wide) + " " + cells + " " + m.state(u.WorkState), goes: m.opensItem(u.Item)}
		if u.Unread != "" {
			r.text += paint(bad, " "+oneLine(u.Unread))
		}
		list = append(list, r)
		for _, t := range u.Batches {
			list = append(list, m.batchRow(u.Name, t, wide))
		}
	}
	for _, p := range b.Problems {
		list = append(list, row{text: paint(bad, oneLine(p))})
	}
	return list
}

func (m *model) batchRow(unit string, b view.BoardBatch, wide int) row {
	state := m.state(b.WorkState)
	if len(b.Blocked) > 0 {
		state = "waits for " + oneLine(strings.Join(b.Blocked, ", "))
	}
	text := "  " + column(middle(oneLine(b.ID), wide-2), wide-2) + " " + sign(b.Mark) + " " + state
	if b.Title != "" {
		text += "  " + paint(dim, oneLine(b.Title))
	}
	return row{id: "batch " + unit + "/" + b.ID, text: text, goes: m.opensItem(b.Item)}
}

// state describes where a piece of work is.
func (m *model) state(w run.WorkState) string {
	text := plain(safe(w.Status))
	switch w.Status {
	case flow.Failed:
		return paint(bad, strings.TrimSuffix("failed: "+oneLine(w.Error), ": "))
	case flow.Queued:
		return "queued for " + plain(safe(w.Pending))
	case flow.Complete, flow.NoChange:
		return text
	}
	if !w.Since.IsZero() && w.Item != "" {
		text += " " + ago(w.Since, m.clock())
	}
	if w.Note != "" {
		text += " (" + oneLine(w.Note) + ")"
	}
	return text
}

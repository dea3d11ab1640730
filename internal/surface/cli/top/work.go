package top

import (
	"fmt"

	"lockkeeper/internal/surface/cli/term"
)

// workRows lists the items of the queue.
func (m *model) workRows() (list []row) {
	v := m.seen.items
	if v == nil {
		return []row{{text: paint(dim, "reading …")}}
	}
	q := v.Queue
	list = append(list, title(fmt.Sprintf("%d running, %d ready, %d blocked, %d completed, %d failed", q.Running, q.Ready, q.Blocked, q.Completed, q.Failed)))
	wide := max(12, min(40, m.width/3))
	for _, it := range v.Items {
		text := column(it.ID, 8) + column(middle(oneLine(it.Name), wide), wide) + "  " + paint(toneOf(it.State), column(plain(it.State), 12)) + " " + paint(dim, column(plain(safe(it.Phase)), 12))
		if len(it.Waits) > 0 {
			text += " waits for " + oneLine(it.Waits[0].Text)
		}
		note := ""
		if took := it.Worked.Duration(); took > 0 {
			note = term.Span(wholeSeconds(took))
		}
		list = append(list, row{id: "item " + it.ID, text: text, note: note, goes: m.opensItem(it.ID)})
	}
	if v.Next != 0 {
		list = append(list, row{text: paint(dim, "older ones: lockkeeper job list")})
	}
	return list
}

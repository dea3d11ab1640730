package top

import (
	"fmt"
	"maps"
	"slices"

	"lockkeeper/internal/surface/cli/term"
)

// rescueRows lists the kept changes that need attention.
func (m *model) rescueRows() (list []row) {
	if m.seen.rescue == nil {
		return []row{{text: paint(dim, "reading …")}}
	}
	open, resolved := m.seen.rescue.Unresolved()
	kinds := slices.Sorted(maps.Keys(open.Kinds))
	if len(kinds) > 0 {
		list = append(list, title(term.Join(kinds, func(k string) string { return fmt.Sprintf("%d %s", open.Kinds[k], plain(safe(k))) })))
	}
	wide := max(16, m.width/3)
	for _, e := range open.Entries {
		list = append(list, row{id: "kept " + e.ID, text: column(middle(safe(e.Path), wide), wide) + "  " + column(plain(safe(string(e.Kind))), 10) + " " + paint(dim, oneLine(e.What)),
			note: ago(e.At, m.clock()), goes: func(m *model) { m.show(opened{kept: e.ID}) }})
	}
	if open.Problem != "" {
		list = append(list, row{text: paint(bad, oneLine(open.Problem))})
	}
	if len(open.Entries) == 0 {
		list = append(list, row{text: paint(dim, "Everything landed, or was answered.")})
	}
	if resolved > 0 {
		list = append(list, row{text: paint(dim, fmt.Sprintf("%d more need no attention: lockkeeper rescue list", resolved))})
	}
	return list
}

// keptLines draws a kept change with its diff and the commands that act on it.
func (m *model) keptLines() []string {
	k := m.seen.kept
	if k == nil || k.RescueEntry.ID != m.open.kept {
		return []string{"", paint(dim, " reading …")}
	}
	list := []string{" " + paint(bold, safe(k.RescueEntry.Path)), " " + oneLine(k.What)}
	for _, a := range k.Acts {
		if a.Refused == "" {
			list = append(list, " "+column(a.Name, 8)+paint(dim, safe(a.Command)))
		}
	}
	if k.Note != "" {
		list = append(list, " "+oneLine(k.Note))
	}
	if k.Diff != nil {
		list = append(list, m.diffLines(k.Diff)...)
	}
	return list
}

package top

import (
	"fmt"
	"slices"
	"strings"

	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/surface/view"
)

// decisionRow begins the ids of rows of decisions.
const decisionRow = "decision "

// decideRows lists the open decisions, the most useful first within each kind.
func (m *model) decideRows() (list []row) {
	q := m.seen.decisions
	if q == nil {
		return []row{{text: paint(dim, "reading …")}}
	}
	for _, kind := range progress.Kinds() {
		count := 0
		var some []row
		for _, d := range q.Open {
			if d.Ref.Kind == kind {
				some = append(some, m.decisionRow(d))
				count++
			}
		}
		if count > 0 {
			list = append(append(list, title(fmt.Sprintf("%ss (%d)", kind, count))), some...)
		}
	}
	if list == nil {
		list = append(list, row{text: paint(dim, "Nothing waits for you. New decisions are shown here at once.")})
	}
	for _, u := range q.Unread {
		list = append(list, row{text: paint(bad, oneLine(u.Unit)+": "+oneLine(u.Reason))})
	}
	for _, p := range q.Problems {
		list = append(list, row{text: paint(bad, oneLine(p))})
	}
	return list
}

func (m *model) decisionRow(d view.OpenDecision) row {
	name := strings.TrimPrefix(d.Ref.String(), string(d.Ref.Kind)+" ")
	wide := max(12, min(36, m.width/3))
	text := column(middle(oneLine(name), wide), wide) + "  "
	if d.Impact != "" {
		text += paint(dim, column(safe(d.Impact), 7))
	}
	text += oneLine(d.Title)
	note := ago(d.Since, m.clock())
	return row{id: decisionRow + d.Ref.String(), text: text, note: note, goes: func(m *model) { m.show(opened{ref: d.Ref}) }}
}

// refOf returns the decision of a row.
func (m *model) refOf(id string) (progress.Ref, bool) {
	if q := m.seen.decisions; q != nil {
		for _, d := range q.Open {
			if decisionRow+d.Ref.String() == id {
				return d.Ref, true
			}
		}
	}
	return progress.Ref{}, false
}

// decisionKeys returns the keys of an open decision: j and k open the next and the previous one.
func (m *model) decisionKeys() []binding {
	to := func(step int) func(*model) {
		return func(m *model) {
			m.move(step)
			if r, ok := m.current(); ok && r.goes != nil {
				r.goes(m)
			}
		}
	}
	text := slices.DeleteFunc(textKeys(), func(b binding) bool { return b.has("up") || b.has("down") })
	return append([]binding{
		{"j", "Next: leave this for now", then(to(1))},
		{"k", "Previous", then(to(-1))},
		{"down", "Down", then(func(m *model) { m.scroll++ })},
		{"up", "Up", then(func(m *model) { m.scroll-- })},
	}, text...)
}

// decisionLines draws a decision with everything that a person needs for it.
func (m *model) decisionLines() (list []string) {
	d := m.seen.decision
	if d == nil || d.Ref != m.open.ref {
		return []string{"", paint(dim, " reading …")}
	}
	add := func(text string) { list = append(list, lines(text, m.width)...) }
	fact := func(name, value string) {
		if value = strings.TrimSpace(value); value != "" {
			list = append(list, wrap(" "+paint(dim, safe(name)+":")+" "+strings.Join(cleaned(value), "\n   "), m.width)...)
		}
	}
	list = append(list, " "+paint(bold, oneLine(d.Ref.String())), " "+oneLine(d.Title), "")
	if !d.Waits {
		list = append(list, paint(attend, " It is answered."), "")
	}
	for _, f := range d.Facts {
		fact(f.Name, f.Value)
	}
	if n := len(d.Same); n > 0 {
		fact("equal items", fmt.Sprint(n))
	}
	switch {
	case d.Topic != nil:
		list = append(list, "")
		add(d.Topic.Prompt)
	case d.Plan != nil:
		for _, b := range d.Plan.Batches {
			list = append(list, "", " "+paint(bold, oneLine(b.ID))+" "+oneLine(b.Title))
			for _, it := range b.Does {
				list = append(list, wrap("   "+oneLine(it.Description), m.width)...)
			}
		}
		for _, w := range d.Plan.Warnings {
			list = append(list, paint(attend, " "+oneLine(w)))
		}
	case d.Review != nil && d.Review.Diff != nil:
		list = append(list, m.diffLines(d.Review.Diff)...)
	case d.Gap != nil && d.Gap.Diff != nil:
		list = append(list, m.diffLines(d.Gap.Diff)...)
	case d.Failure != nil:
		for _, p := range d.Failure.Parts {
			list = append(list, "")
			add(p)
		}
	}
	return list
}

// cleaned makes each line of an untrusted text harmless.
func cleaned(text string) (list []string) {
	for line := range strings.Lines(text) {
		list = append(list, safe(line))
	}
	return list
}

// diffLines draws a unified diff, file by file.
func (m *model) diffLines(d *view.Diff) (list []string) {
	for _, f := range d.Files {
		list = append(list, "", spread(" "+paint(bold, safe(f.Path)), fmt.Sprintf("%s +%d −%d ", plain(f.Change), f.Added, f.Removed), m.width))
		if f.Note != "" {
			list = append(list, " "+oneLine(f.Note))
		}
		for line := range strings.Lines(f.Text) {
			tone := noStyle
			switch {
			case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"), strings.HasPrefix(line, "@@"):
				tone = dim
			case strings.HasPrefix(line, "+"):
				tone = good
			case strings.HasPrefix(line, "-"):
				tone = bad
			}
			for _, part := range lines(line, m.width-1) {
				list = append(list, " "+paint(tone, part))
			}
		}
	}
	return list
}

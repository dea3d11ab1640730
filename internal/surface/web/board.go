package web

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"lockkeeper/internal/surface/view"
)

type boardData struct {
	*view.Board
	Status  string // shows only rows with this status; empty: all
	Text    string
	Shown   []boardRow
	Choices []choice
	Runs    bool
}

// A boardRow is a unit with all values of its row computed. Lookups in templates are too slow for a thousand
// rows.
type boardRow struct {
	view.BoardUnit
	Label string
	URL   string
	Tone  string
	Is    string
	Parts []boardPart
}

// A boardPart is a batch or a screen of a row.
type boardPart struct {
	Tone, URL, Title, Text string
}

func (d *Dashboard) boardPage(_ http.ResponseWriter, r *http.Request) (any, error) {
	q := r.URL.Query()
	board, err := d.view.Board(r.Context(), q.Get("flow"))
	if err != nil {
		return nil, err
	}
	data := boardData{Board: board, Status: q.Get("status"), Text: strings.TrimSpace(q.Get("q")), Runs: d.runs != nil}
	for _, u := range board.Units {
		if (data.Status == "" || u.Status == data.Status) && strings.Contains(strings.ToLower(u.Name), strings.ToLower(data.Text)) {
			data.Shown = append(data.Shown, d.rowOf(u, board.Flow))
		}
	}
	at := func(status string) string {
		return address("/board", map[string]string{"status": status, "flow": q.Get("flow"), "q": data.Text})
	}
	data.Choices = []choice{{Name: "all", Count: len(board.Units), URL: at(""), Here: data.Status == ""}}
	for status, n := range board.Statuses {
		data.Choices = append(data.Choices, choice{Name: status, Count: n, URL: at(status), Here: status == data.Status})
	}
	slices.SortFunc(data.Choices[1:], func(a, b choice) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Name, b.Name))
	})
	return data, nil
}

// rowOf returns the row of a unit.
func (d *Dashboard) rowOf(u view.BoardUnit, flowName string) boardRow {
	row := boardRow{BoardUnit: u, Label: oneLine(u.Name), URL: d.toUnit(u.Name, flowName), Tone: tone(u.Status), Is: plain(u.Status)}
	if u.Pending != "" {
		row.Is += " for " + plain(u.Pending)
	}
	for _, b := range u.Batches {
		part := boardPart{Tone: tone(b.Status), Title: b.Title, Text: oneLine(b.ID) + " " + plain(b.Status)}
		switch {
		case b.Undone:
			part.Tone, part.Text = tone("undone"), oneLine(b.ID)+" undone"
		case len(b.Blocked) > 0:
			part.Text = oneLine(b.ID) + " after " + strings.Join(b.Blocked, ", ")
		}
		part.URL = d.toBatch(u.Name, b.ID, flowName)
		if b.Item != "" {
			part.URL = d.toItem(b.Item, u.Name+"/"+b.ID)
		}
		row.Parts = append(row.Parts, part)
	}
	return row
}

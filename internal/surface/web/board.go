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
	Phase   string // shows only rows in this phase; empty: all
	Text    string
	Shown   []boardRow
	Columns []choice // the phases, each with the address of its units
	Pages   pager
	Choices []choice
	Runs    bool
}

// rowsOfBoard is how many units a page of the board shows.
const rowsOfBoard = 50

// A boardRow is a unit with all values of its row computed. Lookups in templates are too slow for a thousand
// rows.
type boardRow struct {
	view.BoardUnit
	Label string
	URL   string
	Tone  string
	Is    string
	Parts []boardPart
	Left  int // batches that are not in Parts
}

// partsOfRow is how many batches a row names.
const partsOfRow = 8

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
	data := boardData{Board: board, Status: q.Get("status"), Phase: q.Get("phase"), Text: strings.TrimSpace(q.Get("q")), Runs: d.runs != nil}
	var matching []view.BoardUnit
	for _, u := range board.Units {
		if (data.Status == "" || u.Status == data.Status) && (data.Phase == "" || u.Phase == data.Phase) && strings.Contains(strings.ToLower(u.Name), strings.ToLower(data.Text)) {
			matching = append(matching, u)
		}
	}
	if matching, data.Pages, err = pagedBy(matching, r, "page", rowsOfBoard); err != nil {
		return nil, err
	}
	for _, u := range matching {
		data.Shown = append(data.Shown, d.rowOf(u, board.Flow))
	}
	for _, p := range board.Phases {
		c := choice{Name: p.Name, Count: p.Units, URL: changedAddress(r, "phase", p.Name, "page"), Here: p.Name == data.Phase}
		if c.Here {
			c.URL = changedAddress(r, "phase", "", "page")
		}
		data.Columns = append(data.Columns, c)
	}
	at := func(status string) string {
		return changedAddress(r, "status", status, "page")
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
	shown := u.Batches[:min(partsOfRow, len(u.Batches))]
	row.Left = len(u.Batches) - len(shown)
	for _, b := range shown {
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

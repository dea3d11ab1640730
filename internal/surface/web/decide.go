package web

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/view"
)

// gatesShown limits how many decisions the list shows around the selected one.
const gatesShown = 150

// decideData is the data of the page Decide: the open decisions, and one of them in full.
type decideData struct {
	*view.Decisions
	Filter   filter
	Kinds    []choice
	Shown    []view.OpenDecision // decisions that pass the filter, around the selected one
	Before   int                 // number of matching decisions before those in Shown
	Behind   int
	Bulk     []view.OpenDecision // decisions of one kind that pass the filter, which one answer can decide together
	BulkKind progress.Kind
	More     int     // decisions that one answer leaves out, because they are too many for a form
	Wrong    string  // why the conditions are not usable
	Equal    []equal // groups of items with the same text
	At       int     // position of the selected decision, from 1; 0: it does not pass the filter
	Of       int     // how many decisions pass the filter
	Decision *view.Decision
	Next     string // URLs; empty: none
	Prev     string
	Runs     bool // this server can start runs
}

// A filter selects the decisions to show.
type filter struct {
	Flow   string
	Kind   string
	Impact string // minimum impact
	Effort string // maximum effort
	Unit   string
	Text   string
	Where  string // conditions, as in lockkeeper decide --where

	where acts.Where
}

// equal is a group of items of several units with the same text.
type equal struct {
	Title string
	Items []view.OpenDecision
}

func filterOf(r *http.Request) filter {
	q := r.URL.Query()
	return filter{Flow: q.Get("flow"), Kind: q.Get("kind"), Impact: q.Get("impact"), Effort: q.Get("effort"), Unit: q.Get("unit"), Text: strings.TrimSpace(q.Get("q")), Where: strings.TrimSpace(q.Get("where"))}
}

// Narrow reports whether the filter selects by more than flow and kind.
func (f filter) Narrow() bool { return f.Impact+f.Effort+f.Unit+f.Text+f.Where != "" }

func (f filter) passes(g view.OpenDecision) bool {
	levels := []string{string(flow.Low), string(flow.Medium), string(flow.High)}
	rated := func(level string) int { return slices.Index(levels, level) }
	lower := func(s string) string { return strings.ToLower(s) }
	switch {
	case f.Kind != "" && string(g.Ref.Kind) != f.Kind:
		return false
	case f.Impact != "" && rated(g.Impact) < rated(f.Impact):
		return false
	case f.Effort != "" && (rated(g.Effort) < 0 || rated(g.Effort) > rated(f.Effort)):
		return false
	case f.Unit != "" && g.Ref.Unit != f.Unit:
		return false
	case f.Text != "" && !strings.Contains(lower(g.Title+" "+g.Ref.String()), lower(f.Text)):
		return false
	}
	return f.where.Selects(g)
}

// url returns the URL of the page with this filter, with ref selected unless it is empty.
func (f filter) url(ref string) string {
	return address("/decide", map[string]string{"flow": f.Flow, "kind": f.Kind, "impact": f.Impact, "effort": f.Effort, "unit": f.Unit, "q": f.Text, "where": f.Where, "ref": ref})
}

// At returns the URL of the page with this filter and ref selected.
func (f filter) At(ref progress.Ref) string { return f.url(ref.String()) }

// Wider returns the URL of the page with all decisions of the same kind.
func (f filter) Wider() string { return filter{Flow: f.Flow, Kind: f.Kind}.url("") }

func (d *Dashboard) decidePage(_ http.ResponseWriter, r *http.Request) (any, error) {
	data := decideData{Filter: filterOf(r), Runs: d.runs != nil}
	var err error
	if data.Decisions, err = d.view.Decisions(r.Context(), data.Filter.Flow); err != nil {
		return nil, err
	}
	if data.Filter.where, err = acts.ParseWhere(data.Filter.Where, acts.DecisionFields); err != nil {
		data.Wrong = lockkeeper.Message(err)
	}
	data.count()
	data.cluster()
	passing := slices.DeleteFunc(slices.Clone(data.Open), func(g view.OpenDecision) bool { return data.Wrong != "" || !data.Filter.passes(g) })
	arrange(passing)
	data.collect(passing)
	data.Of = len(passing)
	named := r.URL.Query().Get("ref")
	var chosen progress.Ref
	switch {
	case named != "":
		if chosen, err = progress.ParseRef(named); err != nil {
			return nil, err
		}
	case len(passing) > 0:
		chosen = passing[0].Ref
	default:
		return data, nil
	}
	data.place(passing, chosen)
	data.Decision, err = d.view.Decision(r.Context(), data.Flow, chosen)
	return data, err
}

// groupOf returns the heading under which the list has a decision.
func groupOf(g view.OpenDecision) string {
	title := plural(2, string(g.Ref.Kind))
	switch {
	case g.Ref.Kind != progress.PlanKind:
	case len(g.Risks) > 0:
		title += " to look at"
	default:
		title += " without a known risk"
	}
	return title
}

// arrange sorts decisions into their groups. The group with the most useful decision comes first, and
// the order in a group stays.
func arrange(list []view.OpenDecision) {
	rank := map[string]int{}
	for _, g := range list {
		if _, known := rank[groupOf(g)]; !known {
			rank[groupOf(g)] = len(rank)
		}
	}
	slices.SortStableFunc(list, func(a, b view.OpenDecision) int { return cmp.Compare(rank[groupOf(a)], rank[groupOf(b)]) })
}

// A listGroup is a part of the list under one heading.
type listGroup struct {
	Title string
	Open  []view.OpenDecision
}

// Groups returns the decisions that are listed, under their headings.
func (d decideData) Groups() (groups []listGroup) {
	for _, g := range d.Shown {
		if n := len(groups); n == 0 || groups[n-1].Title != groupOf(g) {
			groups = append(groups, listGroup{Title: groupOf(g)})
		}
		last := &groups[len(groups)-1]
		last.Open = append(last.Open, g)
	}
	return groups
}

// bulkShown limits how many decisions one form answers.
const bulkShown = 200

// collect collects the decisions that one answer can decide together: those of the chosen kind, or of
// the only kind that passes the filter; otherwise the items.
func (d *decideData) collect(passing []view.OpenDecision) {
	d.BulkKind = progress.ItemKind
	if len(passing) > 0 && !slices.ContainsFunc(passing, func(g view.OpenDecision) bool { return g.Ref.Kind != passing[0].Ref.Kind }) {
		d.BulkKind = passing[0].Ref.Kind
	}
	for _, g := range passing {
		switch {
		case g.Ref.Kind != d.BulkKind:
		case len(d.Bulk) == bulkShown:
			d.More++
		default:
			d.Bulk = append(d.Bulk, g)
		}
	}
}

// Starts returns what the approval of all plans in Bulk starts; nil for other kinds.
func (d decideData) Starts() *view.Estimate {
	var sum *view.Estimate
	for _, g := range d.Bulk {
		if e := g.Estimate; e != nil && sum == nil {
			sum = new(*e)
		} else if e != nil {
			sum.Batches, sum.Took, sum.USD = sum.Batches+e.Batches, sum.Took+e.Took, sum.USD+e.USD
		}
	}
	return sum
}

// count counts the open decisions by kind.
func (d *decideData) count() {
	all := d.Filter
	all.Kind = ""
	d.Kinds = []choice{{Name: "all", Count: len(d.Open), URL: all.url(""), Here: d.Filter.Kind == ""}}
	for _, kind := range progress.Kinds() {
		n := 0
		for _, g := range d.Open {
			if g.Ref.Kind == kind {
				n++
			}
		}
		of := d.Filter
		of.Kind = string(kind)
		if n > 0 || d.Filter.Kind == of.Kind {
			d.Kinds = append(d.Kinds, choice{Name: string(kind), Count: n, URL: of.url(""), Here: d.Filter.Kind == of.Kind})
		}
	}
}

// cluster groups the decisions about items with the same text.
func (d *decideData) cluster() {
	for _, c := range d.Clusters {
		same := equal{Title: c.Title}
		for _, g := range d.Open {
			if slices.Contains(c.Refs, g.Ref) {
				same.Items = append(same.Items, g)
			}
		}
		d.Equal = append(d.Equal, same)
	}
}

// place sets the position of the chosen decision, its neighbors, and the part of the list to show.
func (d *decideData) place(passing []view.OpenDecision, chosen progress.Ref) {
	at := slices.IndexFunc(passing, func(g view.OpenDecision) bool { return g.Ref == chosen })
	d.At = at + 1
	if at > 0 {
		d.Prev = d.Filter.At(passing[at-1].Ref)
	}
	if at+1 < len(passing) {
		d.Next = d.Filter.At(passing[at+1].Ref)
	}
	from := max(0, min(at-gatesShown/2, len(passing)-gatesShown))
	to := min(len(passing), from+gatesShown)
	d.Shown, d.Before, d.Behind = passing[from:to], from, len(passing)-to
}

// Then returns the URL to show after an answer.
func (d decideData) Then() string {
	return cmp.Or(d.Next, d.Prev, d.Filter.url(""))
}

// Here returns the URL of this page with its decision selected.
func (d decideData) Here() string { return d.Filter.At(d.Decision.Ref) }

// A button gives one answer.
type button struct {
	Word, Key, Means, Asks string
	First                  bool
}

// answersTo returns the buttons for decisions of a kind. An answer in free text has a field instead.
func answersTo(kind progress.Kind) (list []button) {
	for _, a := range acts.Answers() {
		if a.Kind == kind && a.Key != 0 {
			list = append(list, button{Word: a.Word, Key: string(rune(a.Key)), Means: a.Means, Asks: a.Asks, First: len(list) == 0 && a.Asks == ""})
		}
	}
	return list
}

// asksFor returns the prompt for the note that an answer of this kind takes, or "" if none takes one.
func asksFor(kind progress.Kind) string {
	for _, b := range answersTo(kind) {
		if b.Asks != "" {
			return b.Asks
		}
	}
	return ""
}

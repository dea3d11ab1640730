package web

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/merge"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/view"
)

// The page Rescue shows a part of the groups, and of each group its newest entries. A group of its
// own is paged.
const (
	groupsShown  = 15
	samplesShown = 3
	entriesShown = 40
)

// rescueData is the data of the page Rescue: the kept changes, grouped by batch and reason.
type rescueData struct {
	*view.Rescue
	Resolved int           // kept changes that are not listed, because they need no attention
	All      bool          // resolved changes are listed too
	Where    string        // the conditions of the filter
	Wrong    string        // why the conditions are not usable
	Groups   []rescueGroup // those of this page
	Single   bool          // one group is shown, with its entries page by page
	Latest   string        // id of the newest entry, which bulk acts do not exceed
	Older    string        // address of the next page; empty: none
	Newest   string        // address of the first page; empty: this is it
	From, To int           // the part of the groups, or of the entries of a single group, that is shown
	Of       int
}

// rescueGroup is a group with the entries that are shown.
type rescueGroup struct {
	view.RescueGroup
	Shown []view.RescueEntry
	URL   string // shows all its entries
	Where string // the conditions that choose them: those of the page, and the group
}

func (d *Dashboard) rescuePage(_ http.ResponseWriter, r *http.Request) (any, error) {
	kept, err := d.view.Rescue(r.Context())
	if err != nil {
		return nil, err
	}
	q := r.URL.Query()
	data := rescueData{Rescue: kept, All: q.Get("all") != "", Where: strings.TrimSpace(q.Get("where"))}
	if !data.All {
		data.Rescue, data.Resolved = kept.Unresolved()
	}
	if err := data.filter(r.Context(), d.view); err != nil {
		return nil, err
	}
	if len(data.Entries) > 0 {
		data.Latest = data.Entries[0].ID
	}
	from, err := pageNumber(q.Get("from"))
	if err != nil {
		return nil, err
	}
	data.page(int(min(from, 1<<30)), q.Get("all"))
	for i := range data.Groups {
		if err := d.view.Fits(r.Context(), data.Groups[i].Shown); err != nil {
			return nil, err
		}
	}
	return data, nil
}

// filter keeps the entries that meet the conditions. Conditions that are not usable select nothing
// and are explained.
func (d *rescueData) filter(ctx context.Context, views Views) error {
	if w, err := acts.ParseWhere(d.Where, append([]string{"group"}, acts.RescueFields...)); err == nil && w.Names("now") {
		if err := views.Fits(ctx, d.Entries); err != nil {
			return err
		}
	}
	some, err := d.Rescue.Where(d.Where)
	if err != nil {
		d.Wrong = lockkeeper.Message(err)
		return nil
	}
	d.Rescue = some
	return nil
}

// page chooses the groups and entries to show.
func (d *rescueData) page(from int, all string) {
	groups := d.Rescue.Groups()
	at := func(where string, from int) string {
		q := map[string]string{"where": where, "all": all}
		if from > 0 {
			q["from"] = strconv.Itoa(from)
		}
		return address("/rescue", q)
	}
	size := groupsShown
	d.Of = len(groups)
	if d.Single = len(groups) == 1; d.Single {
		size, d.Of = entriesShown, len(groups[0].Entries)
	}
	d.From = min(from, max(0, d.Of-1))
	d.To = min(d.Of, d.From+size)
	if d.From > 0 {
		d.Newest = at(d.Where, 0)
	}
	if d.To < d.Of {
		d.Older = at(d.Where, d.To)
	}
	of := func(g view.RescueGroup, shown []view.RescueEntry) rescueGroup {
		where := "group=" + g.ID
		switch {
		case strings.Contains(d.Where, where):
			where = d.Where
		case d.Chosen() != "all":
			where = d.Where + "," + where
		}
		return rescueGroup{g, shown, at(where, 0), where}
	}
	if d.Single {
		d.Groups = []rescueGroup{of(groups[0], groups[0].Entries[d.From:d.To])}
		return
	}
	for _, g := range groups[d.From:d.To] {
		d.Groups = append(d.Groups, of(g, g.Entries[:min(samplesShown, len(g.Entries))]))
	}
}

// Chosen returns the conditions of a bulk act on all entries that are listed.
func (d rescueData) Chosen() string {
	if d.Where == "" {
		return "all"
	}
	return d.Where
}

type keptData struct{ *view.RescueDetail }

func (k keptData) heading() string { return k.RescueEntry.Path }

// Resolvable reports whether a person can merge the change by hand on the page.
func (k keptData) Resolvable() bool {
	const longest = 60 << 10            // a longer text is merged in an editor
	_, same := merge.LineEnds(k.Merged) // a browser sends all lines with the same end
	return k.Merged != "" && same && k.Fit != nil && !k.Fit.Applies() && len(k.Merged) <= longest
}

// NowSum returns the SHA-256 of the file that the change was merged with.
func (k keptData) NowSum() string { return fmt.Sprintf("%x", k.Fit.Now.Sum) }

// HasCR reports whether lines of the merged text end with CR LF.
func (k keptData) HasCR() bool {
	crlf, _ := merge.LineEnds(k.Merged)
	return crlf
}

func (d *Dashboard) keptPage(_ http.ResponseWriter, r *http.Request) (any, error) {
	kept, err := d.view.Rescued(r.Context(), r.PathValue("id"))
	return keptData{kept}, err
}

func land(d *Dashboard, ctx context.Context, f form) (said, error) {
	how := acts.Landing{OntoCurrent: f.Get("onto") != "", Base: f.Get("base")}
	if how.Base != "" {
		if err := f.needs("resolved"); err != nil {
			return said{}, err
		}
		text := f.Values.Get("resolved")
		if f.Get("crlf") == "" { // browsers send every end of a line as CR LF
			text = strings.ReplaceAll(text, "\r\n", "\n")
		}
		how.Resolved = &text
	}
	e, l, err := acts.LandRescued(ctx, d.app, f.Get("id"), how, acts.Changer{Actor: f.who.Actor()}, acts.Holding(d.app, f.who.Actor()))
	if err != nil {
		return said{}, err
	}
	if l == nil {
		return done("%s has this content already; the rescued write is dropped.", e.Path), nil
	}
	return done("%s has landed, as landing %d; the rescued write is dropped.", e.Path, l.Seq), nil
}

func drop(d *Dashboard, ctx context.Context, f form) (said, error) {
	e, err := acts.DropRescued(ctx, d.app, f.Get("id"), f.who.Actor())
	if err != nil {
		return said{}, err
	}
	return done("The rescued write to %s is deleted.", e.Path), nil
}

// chosenOf returns the kept changes that a form names by conditions.
func chosenOf(f form) acts.Chosen { return acts.Chosen{Where: f.Get("where"), Until: f.Get("until")} }

// landAll lands every kept change that meets the conditions and applies.
func landAll(d *Dashboard, ctx context.Context, f form) (said, error) {
	list, err := view.New(d.app).Chosen(ctx, chosenOf(f))
	if err != nil {
		return said{}, err
	}
	by := f.who.Actor()
	v := acts.LandMany(ctx, d.app, list, acts.Changer{Actor: by}, acts.Holding(d.app, by))
	s := said{Changed: len(v.Landed) > 0, Bad: v.Failed != nil, Lines: []string{fmt.Sprintf("%s landed, %d stayed kept.", counted(len(v.Landed), "kept change"), len(v.Kept))}}
	for i, one := range v.Kept {
		if i == linesSaid {
			s.Lines = append(s.Lines, fmt.Sprintf("And %d more.", len(v.Kept)-i))
			break
		}
		s.Lines = append(s.Lines, one.Path+": "+one.Reason)
	}
	return s, v.Failed
}

// dropAll deletes every kept change that meets the conditions.
func dropAll(d *Dashboard, ctx context.Context, f form) (said, error) {
	list, err := view.New(d.app).Chosen(ctx, chosenOf(f))
	if err != nil {
		return said{}, err
	}
	if shown, err := strconv.Atoi(f.Get("count")); err != nil || len(list) > shown {
		return said{}, &lockkeeper.RefusedError{Act: "drop", Reason: fmt.Sprintf("%s would be deleted, and the page showed %s", counted(len(list), "kept change"), f.Get("count")), Next: "reload the page"}
	}
	gone, err := acts.DropMany(ctx, d.app, list, f.who.Actor())
	s := done("%s deleted.", counted(len(gone), "kept change"))
	s.Changed = len(gone) > 0
	return s, err
}

package view

import (
	"context"
	"slices"
	"time"

	"lockkeeper/internal/surface/acts"
	"lockkeeper/rescue"
)

// A RescueGroup is the kept changes of one batch or holder that have one reason.
type RescueGroup struct {
	ID          string        `json:"id"`
	Batch       string        `json:"batch"` // or another holder
	Kind        string        `json:"kind"`
	Reason      string        `json:"reason"` // without what only one change has
	Entries     []RescueEntry `json:"entries"`
	Bytes       int64         `json:"bytes"`
	At          time.Time     `json:"at"`          // when the newest was kept
	Latest      string        `json:"latest"`      // id of the newest
	Applying    int           `json:"applying"`    // of those that were compared
	Conflicting int           `json:"conflicting"` // conflicts and unknown bases, of those that were compared
}

// Groups groups the entries by batch and reason. The group with the newest entry comes first.
func (v *Rescue) Groups() []RescueGroup {
	groups := []RescueGroup{}
	at := map[string]int{}
	for _, e := range v.Entries {
		id := acts.GroupOf(e.Entry)
		i, known := at[id]
		if !known {
			i, at[id] = len(groups), len(groups)
			groups = append(groups, RescueGroup{ID: id, Batch: e.Holder, Kind: e.What, Reason: acts.WhyKept(e.Entry), At: e.At, Latest: e.ID})
		}
		g := &groups[i]
		g.Entries, g.Bytes = append(g.Entries, e), g.Bytes+e.Size
		if e.Fit != nil {
			switch e.Fit.State {
			case acts.FitUnchanged, acts.FitClean, acts.FitLanded:
				g.Applying++
			case acts.FitConflict, acts.FitUnknown:
				g.Conflicting++
			}
		}
	}
	return groups
}

// Where returns the entries that meet conditions on acts.RescueFields or group; "": all.
func (v *Rescue) Where(text string) (*Rescue, error) {
	if text == "" {
		return v, nil
	}
	w, err := acts.ParseWhere(text, append(slices.Clone(acts.RescueFields), "group"))
	if err != nil {
		return nil, err
	}
	some := *v
	some.Entries, some.Kinds, some.Bytes = []RescueEntry{}, map[string]int{}, 0
	for _, e := range v.Entries {
		if w.Selects(acts.Rescued{Entry: e.Entry, Fit: e.Fit}) {
			some.add(e)
		}
	}
	return &some, nil
}

// Fits compares entries with the files as they are now.
func (rd *Reader) Fits(ctx context.Context, entries []RescueEntry) error {
	for i := range entries {
		e := &entries[i]
		fit, err := acts.FitOf(ctx, rd.project, e.Entry)
		if err != nil {
			return err
		}
		e.setFit(fit)
	}
	return nil
}

// setFit records how an entry fits. One that conflicts cannot land as it is.
func (e *RescueEntry) setFit(fit acts.Fit) {
	e.Fit = &fit
	for i := range e.Acts {
		if e.Acts[i].Name == "land" && e.Acts[i].Refused == "" && fit.State == acts.FitConflict {
			e.Acts[i].Refused = "it conflicts: resolve that on its page"
		}
	}
}

// Chosen returns the kept changes that a person chose. Conditions choose only changes that need
// attention.
func (rd *Reader) Chosen(ctx context.Context, c acts.Chosen) ([]rescue.Entry, error) {
	done, err := rd.resolved(ctx)
	if err != nil && len(c.IDs) == 0 {
		return nil, err
	}
	return c.Of(ctx, rd.project, done)
}

package acts

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/project"
	"lockkeeper/internal/session"
	"lockkeeper/rescue"
)

// A Rescued is a kept change as conditions see it. Fit is nil if it was not compared.
type Rescued struct {
	rescue.Entry
	Fit *Fit
}

// Field returns the values of a field of RescueFields, or of the field group.
func (r Rescued) Field(name string) []string {
	switch name {
	case "kind":
		return []string{r.Kind}
	case "batch", "by":
		return []string{r.Holder}
	case "path":
		return []string{r.Path}
	case "reason":
		return []string{r.Reason}
	case "text":
		return []string{r.Path + "\n" + r.Holder + "\n" + r.Reason}
	case "group":
		return []string{GroupOf(r.Entry)}
	case "now":
		if r.Fit != nil {
			return []string{r.Fit.State}
		}
	}
	return nil
}

// WhyKept returns the reason of a kept change without what only this one has, so that changes can be
// grouped by it.
func WhyKept(e rescue.Entry) string {
	why, _, _ := strings.Cut(e.Reason, "\n")
	if e.Path != "" {
		why = strings.ReplaceAll(why, e.Path, "the file")
	}
	return why
}

// GroupOf returns the name of the group of a kept change: those of one batch or holder for one reason.
func GroupOf(e rescue.Entry) string {
	sum := sha256.Sum256([]byte(e.Holder + "\x00" + e.Kind + "\x00" + WhyKept(e)))
	return fmt.Sprintf("%x", sum[:4])
}

// A Chosen selects kept changes, by id or by conditions.
type Chosen struct {
	IDs   []string `json:"ids,omitempty"`
	Where string   `json:"where,omitempty"` // conditions on RescueFields and group; all: every change
	Until string   `json:"until,omitempty"` // id of the newest change that the person saw; later ones are not chosen
}

// Of returns the chosen kept changes, the oldest first. Conditions choose none for which resolved
// returns true: those whose gaps are answered, and work that landed later.
func (c Chosen) Of(ctx context.Context, a *project.Project, resolved func(rescue.Entry) bool) (list []rescue.Entry, err error) {
	if (len(c.IDs) == 0) == (c.Where == "") {
		return nil, &lockkeeper.InputError{Field: "where", Value: c.Where, Reason: "name kept changes by their ids or by conditions, not both", Next: "lockkeeper rescue list"}
	}
	shelf := a.Shelf()
	for _, text := range c.IDs {
		id, err := shelf.Find(ctx, text)
		if err != nil {
			return nil, err
		}
		e, err := shelf.Get(id)
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	if c.Where == "" {
		return list, nil
	}
	w, err := ParseWhere(c.Where, append(slices.Clone(RescueFields), "group"))
	if err != nil {
		return nil, err
	}
	all, err := session.Rescued(ctx, a)
	if err != nil {
		return nil, err
	}
	for _, e := range all {
		one := Rescued{Entry: e}
		if w.Names("now") {
			fit, err := FitOf(ctx, a, e)
			if err != nil {
				return nil, err
			}
			one.Fit = &fit
		}
		if (c.Until == "" || e.ID <= c.Until) && !resolved(e) && w.Selects(one) {
			list = append(list, e)
		}
	}
	return list, nil
}

// LandedMany lists what became of kept changes that were to land together.
type LandedMany struct {
	Landed []LandedOne `json:"landed"`
	Kept   []StaysOne  `json:"kept"` // changes that did not land and stay kept
	Failed error       `json:"-"`    // the failure that ended the act early
}

// LandedOne is one kept change that landed. Landing is 0 if the file had its content already.
type LandedOne struct {
	ID      string `json:"id"`
	Path    string `json:"path"`
	Landing uint64 `json:"landing"`
}

// StaysOne is a kept change that stays, and why.
type StaysOne struct {
	ID     string `json:"id"`
	Path   string `json:"path"`
	Reason string `json:"reason"`
	Next   string `json:"next,omitempty"`
}

// LandMany lands kept changes one after the other, the oldest first. Those that do not apply to the
// files as they are now, or whose files are locked, stay kept.
func LandMany(ctx context.Context, a *project.Project, list []rescue.Entry, by Changer, hold Hold) LandedMany {
	done := LandedMany{Landed: []LandedOne{}, Kept: []StaysOne{}}
	for _, e := range list {
		if done.Failed = context.Cause(ctx); done.Failed != nil {
			return done
		}
		var fit Fit
		err := by.mayLand(ctx, e) // says nothing else about the work of others
		if err == nil {
			fit, err = FitOf(ctx, a, e)
		}
		if err == nil && fit.State == FitUnknown {
			err = &lockkeeper.RefusedError{Act: "land " + e.ID, Reason: fit.String(), Next: ResolveStep(e, fit.Now)}
		}
		var l *lockkeeper.Landing
		if err == nil {
			_, l, err = LandRescued(ctx, a, e.ID, Landing{}, by, hold)
		}
		if err != nil {
			var reasons []string
			for _, part := range lockkeeper.Parts(err) {
				reason, _, _ := strings.Cut(lockkeeper.Message(part), "\n")
				reasons = append(reasons, reason)
			}
			done.Kept = append(done.Kept, StaysOne{ID: e.ID, Path: e.Path, Reason: strings.Join(reasons, "; "), Next: lockkeeper.NextStep(err)})
			if lockkeeper.CodeOf(err) == lockkeeper.CodeStore {
				done.Failed = err
				return done
			}
			continue
		}
		one := LandedOne{ID: e.ID, Path: e.Path}
		if l != nil {
			one.Landing = l.Seq
		}
		done.Landed = append(done.Landed, one)
	}
	return done
}

// DropMany deletes kept changes and records the actor first. A change that is gone already does not
// stop it.
func DropMany(ctx context.Context, a *project.Project, list []rescue.Entry, by lockkeeper.Actor) (dropped []rescue.Entry, err error) {
	if len(list) == 0 {
		return nil, nil
	}
	what := fmt.Sprintf("%d rescued changes are dropped: %s", len(list), strings.Join(firstPaths(list, 5), ", "))
	if len(list) == 1 {
		what = fmt.Sprintf("rescued change %s of %s is dropped", list[0].ID, list[0].Path)
	}
	if err := conduct.RecordDecision(ctx, a, by, what); err != nil {
		return nil, err
	}
	for _, e := range list {
		failed := a.Shelf().Drop(e.ID)
		if errors.As(failed, new(*lockkeeper.InputError)) { // another person landed or dropped it
			continue
		}
		if err = errors.Join(err, failed); failed == nil {
			dropped = append(dropped, e)
		}
	}
	return dropped, err
}

// firstPaths lists the paths of the first entries, and how many more there are.
func firstPaths(list []rescue.Entry, n int) (paths []string) {
	for _, e := range list[:min(n, len(list))] {
		paths = append(paths, cmp.Or(e.Path, e.ID))
	}
	if more := len(list) - n; more > 0 {
		paths = append(paths, fmt.Sprintf("and %d more", more))
	}
	return paths
}

package view

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/landing"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/rescue"
)

// Rescue lists what is kept.
func (l *Look) Rescue(ctx context.Context) (*Rescue, error) {
	v := &Rescue{Entries: []Kept{}, Kinds: map[string]int{}, KeptFor: seconds(l.app.Config.Gate.Keep)}
	var err error
	if v.Moment, err = l.at(ctx, nothingElse); err != nil {
		return nil, err
	}
	list, err := l.kept(ctx)
	if err != nil {
		v.Problem = err.Error()
	}
	refs, err := l.gapRefs(ctx)
	if err != nil {
		return nil, err
	}
	for _, e := range slices.Backward(list) {
		v.Entries = append(v.Entries, l.keptOf(e, refs))
		v.Kinds[e.Kind]++
		v.Bytes += e.Size
	}
	return v, nil
}

// gapRefs are the gaps of the last flow, by where their changes are kept.
func (l *Look) gapRefs(ctx context.Context) (map[string]progress.Ref, error) {
	name, err := conduct.LastFlow(l.app, "")
	if err != nil {
		return nil, err
	}
	p, err := l.papers(ctx, name)
	if err != nil {
		return nil, err
	}
	refs := map[string]progress.Ref{}
	for _, u := range p.units {
		if u.Unit == nil {
			continue
		}
		for i := range u.Batches {
			for _, g := range u.Batches[i].Gaps() {
				if g.Rescue != "" {
					refs[g.Rescue] = progress.Ref{Kind: progress.GapKind, Unit: u.name, Batch: u.Batches[i].ID, Gap: g.Number}
				}
			}
		}
	}
	return refs, nil
}

func (l *Look) keptOf(e rescue.Entry, refs map[string]progress.Ref) Kept {
	k := Kept{Entry: e, What: WhatIsKept(e), Mode: ModeOf(e), Until: e.At.Add(l.app.Config.Gate.Keep)}
	if ref, ok := refs[e.ID]; ok {
		k.Ref = &ref
	}
	land := Act{Name: "land", Target: e.ID, Command: "lockkeeper rescue land " + e.ID}
	switch e.Kind {
	case rescue.Noted:
		land.Refused = "its content was too large to keep"
	case rescue.Archive:
		land.Refused = "it is an archive of many files: " + acts.ListArchive(l.app, e)
	case rescue.Whole:
		land.Refused = "it is no file: move it back by hand, under a lock on " + e.Path
	case rescue.Damaged:
		land.Refused = "it is damaged: " + e.Reason
	}
	k.Acts = []Act{land, {Name: "drop", Target: e.ID, Command: "lockkeeper rescue drop " + e.ID}}
	return k
}

// WhatIsKept is what an entry is, in a word or two.
func WhatIsKept(e rescue.Entry) string {
	if e.Kind == rescue.Gap && e.Delete {
		return "gap, a deletion"
	}
	return e.Kind
}

// ModeOf is the permissions of an entry as people write them; empty: those that are there.
func ModeOf(e rescue.Entry) string {
	if e.Mode == 0 {
		return ""
	}
	return fmt.Sprintf("%04o", e.Mode.Perm())
}

// Rescued shows one thing that is kept, with what it would change.
func (l *Look) Rescued(ctx context.Context, id string) (*Rescued, error) {
	e, err := l.app.Shelf().Get(id)
	if err != nil {
		return nil, err
	}
	refs, err := l.gapRefs(ctx)
	if err != nil {
		return nil, err
	}
	v := &Rescued{Kept: l.keptOf(e, refs), Content: l.app.Shelf().ContentPath(e.ID)}
	if v.Moment, err = l.at(ctx, nothingElse); err != nil {
		return nil, err
	}
	text, note, err := acts.Difference(l.app, e)
	if err != nil {
		return nil, err
	}
	v.Diff, v.Note = keptDiff(e.Path, e.Base.Exists(), !e.Delete, text, note), note
	v.Next, err = WayOut(ctx, l.app, e)
	return v, err
}

// WayOut is what can be done with an entry, besides dropping it.
func WayOut(ctx context.Context, a *project.Project, e rescue.Entry) (string, error) {
	land, where := "lockkeeper rescue land "+e.ID, a.Shelf().ContentPath(e.ID)
	switch {
	case e.Kind == rescue.Noted:
		return "raise gate.keep_file_mb or gate.keep_total_mb if such files are to be kept", nil
	case e.Kind == rescue.Archive:
		return acts.ListArchive(a, e), nil
	case e.Kind == rescue.Whole:
		return "move it back by hand, under a lock on " + e.Path, nil
	case e.Kind == rescue.Damaged:
		return "copy what you need from " + where, nil
	case e.Kind == rescue.Uncommitted:
		return "lockkeeper rescue restore " + e.ID, nil
	case !strings.HasPrefix(e.Reason, "allowlist: "):
		return land, nil
	}
	barred, err := landing.Barred(ctx, a, e.Path)
	switch {
	case err != nil || barred == nil:
		return land, err
	case strings.Contains(barred.Next, "gate.allowed_write_paths"):
		return barred.Next + ", then " + land + "; or copy what you need from " + where, nil
	}
	return barred.Next + ": the content is in " + where, nil
}

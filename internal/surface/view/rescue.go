package view

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/landing"
	"lockkeeper/internal/session"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/rescue"
)

// Rescue is everything that could not land and was kept.
type Rescue struct {
	Moment
	Entries []RescueEntry  `json:"entries"` // the newest first
	Kinds   map[string]int `json:"kinds"`
	Bytes   int64          `json:"bytes"`
	KeptFor Seconds        `json:"kept_for_seconds"`  // how long entries are kept
	Problem string         `json:"problem,omitempty"` // why entries, or their gaps, are missing
	Err     error          `json:"-"`                 // why entries are missing
}

// KeptChange is a kept change, with its permissions in octal.
type KeptChange struct {
	rescue.Entry
	Mode string    `json:"mode"`          // empty: unchanged
	Fit  *acts.Fit `json:"fit,omitempty"` // whether it applies to the file as it is now; nil: not compared
}

func KeptOf(e rescue.Entry) KeptChange {
	k := KeptChange{Entry: e}
	if e.Mode != 0 {
		k.Mode = fmt.Sprintf("%04o", e.Mode.Perm())
	}
	return k
}

// RescueEntry is a kept change, with what can be done about it.
type RescueEntry struct {
	KeptChange
	Done  bool          `json:"done"`          // the gap of the entry is answered, or the batch of the entry landed later
	What  string        `json:"what"`          // short description
	Ref   *progress.Ref `json:"ref,omitempty"` // the gap that the entry belongs to
	Until time.Time     `json:"until"`         // kept at least until then
	Acts  []Act         `json:"acts"`          // land, drop
}

// RescueDetail is one kept change with its diff.
type RescueDetail struct {
	Moment
	RescueEntry
	Diff    *Diff  `json:"diff,omitempty"`   // what the change does to its base
	Note    string `json:"note,omitempty"`   // why there is no diff, or how to read it
	Merged  string `json:"merged,omitempty"` // the file after the change; has markers around conflicts
	Content string `json:"content"`          // where the content is on disk
	Next    string `json:"next"`             // what to do with an entry that is not dropped
}

func (rd *Reader) Rescue(ctx context.Context) (*Rescue, error) {
	v := &Rescue{Entries: []RescueEntry{}, Kinds: map[string]int{}, KeptFor: seconds(rd.project.Config.Gate.Keep)}
	var err error
	if v.Moment, err = rd.at(ctx, nil); err != nil {
		return nil, err
	}
	list, err := rd.rescued(ctx)
	v.Err = err
	refs, err := rd.gapRefs(ctx) // if this fails, the entries are shown without their gaps
	done, failed := rd.resolved(ctx)
	if err == nil {
		err = failed
	}
	if err := cmp.Or(v.Err, err); err != nil {
		v.Problem = err.Error()
	}
	for _, e := range slices.Backward(list) {
		entry := rd.rescueEntry(e, refs)
		entry.Done = done(e)
		v.add(entry)
	}
	return v, nil
}

// Unresolved returns the kept changes that need attention, and how many others there are.
func (v Rescue) Unresolved() (open *Rescue, resolved int) {
	all := v.Entries
	v.Entries, v.Kinds, v.Bytes = []RescueEntry{}, map[string]int{}, 0
	for _, e := range all {
		if e.Done {
			resolved++
		} else {
			v.add(e)
		}
	}
	return &v, resolved
}

func (v *Rescue) add(e RescueEntry) {
	v.Entries = append(v.Entries, e)
	v.Kinds[e.Kind]++
	v.Bytes += e.Size
}

// resolved returns whether a kept change needs no attention: all its gaps are answered, or it is work of a batch that
// landed later. If the documents cannot be read, none is resolved.
func (rd *Reader) resolved(ctx context.Context) (func(rescue.Entry) bool, error) {
	open, answered, landed := map[string]bool{}, map[string]bool{}, map[string]time.Time{}
	p, err := rd.lastDocuments(ctx)
	if err == nil {
		for u, b := range p.eachBatch {
			for _, g := range b.Gaps() {
				if g.Answer == "" {
					open[g.Rescue] = true
				} else {
					answered[g.Rescue] = true
				}
			}
			if b.Landed != nil {
				landed[u.name+"/"+b.ID] = b.Landed.At
			}
		}
	}
	return func(e rescue.Entry) bool {
		return answered[e.ID] && !open[e.ID] || e.Kind == rescue.Unlanded && landed[e.Holder].After(e.At)
	}, err
}

// gapRefs returns the gaps of the last flow by rescue id.
func (rd *Reader) gapRefs(ctx context.Context) (map[string]progress.Ref, error) {
	p, err := rd.lastDocuments(ctx)
	if err != nil {
		return nil, err
	}
	refs := map[string]progress.Ref{}
	for u, b := range p.eachBatch {
		for _, g := range b.Gaps() {
			if g.Rescue != "" {
				refs[g.Rescue] = progress.Ref{Kind: progress.GapKind, Unit: u.name, Batch: b.ID, Gap: g.Number}
			}
		}
	}
	return refs, nil
}

func (rd *Reader) rescueEntry(e rescue.Entry, refs map[string]progress.Ref) RescueEntry {
	k := RescueEntry{KeptChange: KeptOf(e), What: RescueKind(e), Until: e.At.Add(rd.project.Config.Gate.Keep)}
	if ref, ok := refs[e.ID]; ok {
		k.Ref = &ref
	}
	land := Act{Name: "land", Target: e.ID, Command: "lockkeeper rescue land " + e.ID}
	land.Refused, _ = acts.CannotLand(rd.project, e)
	k.Acts = []Act{land, {Name: "drop", Target: e.ID, Command: "lockkeeper rescue drop " + e.ID}}
	return k
}

// RescueKind describes an entry in a word or two.
func RescueKind(e rescue.Entry) string {
	if e.Kind == rescue.Gap && e.Delete {
		return "gap, a deletion"
	}
	return e.Kind
}

// Rescued returns one kept change with its diff.
func (rd *Reader) Rescued(ctx context.Context, id string) (*RescueDetail, error) {
	id, err := rd.project.Shelf().Find(ctx, id)
	if err != nil {
		return nil, err
	}
	e, err := rd.project.Shelf().Get(id)
	if err != nil {
		return nil, err
	}
	refs, _ := rd.gapRefs(ctx) // without the documents the entry is shown without its gap
	v := &RescueDetail{RescueEntry: rd.rescueEntry(e, refs), Content: rd.project.Shelf().ContentPath(e.ID)}
	if v.Moment, err = rd.at(ctx, nil); err != nil {
		return nil, err
	}
	var fit *acts.Fit
	if v.Diff, fit, err = rd.keptDiff(ctx, e); err != nil {
		return nil, err
	}
	v.setFit(*fit)
	v.Note, v.Merged = v.Fit.Note, v.Fit.Merged
	v.Next, err = rd.rescueStep(ctx, e, *v.Fit)
	return v, err
}

// rescueStep returns what to do with an entry, if it is not dropped.
func (rd *Reader) rescueStep(ctx context.Context, e rescue.Entry, fit acts.Fit) (string, error) {
	land, where := "lockkeeper rescue land "+e.ID, rd.project.Shelf().ContentPath(e.ID)
	reason, instead := acts.CannotLand(rd.project, e)
	switch {
	case reason != "":
		return instead, nil
	case fit.State == acts.FitConflict, fit.State == acts.FitUnknown:
		return acts.ResolveStep(e, fit.Now), nil
	case e.Kind == rescue.Uncommitted:
		return "lockkeeper rescue restore " + e.ID, nil
	case !strings.HasPrefix(e.Reason, "allowlist: "):
		return land, nil
	}
	barred, err := landing.Barred(ctx, rd.project, e.Path)
	switch {
	case err != nil || barred == nil:
		return land, err
	case strings.Contains(barred.Next, "gate.allowed_write_paths"):
		return barred.Next + ", then " + land + "; or copy what you need from " + where, nil
	}
	return barred.Next + ": the content is in " + where, nil
}

// rescueCache is the rescue shelf as last read. Entries never change. They are added and
// removed by renames, which change the directory's time.
type rescueCache struct {
	entries  []rescue.Entry
	changed  time.Time
	reliable bool
}

// rescued lists the rescue shelf, oldest first. It reads the shelf only if it may have
// changed. With an error it returns the entries that could be read.
func (rd *Reader) rescued(ctx context.Context) (_ []rescue.Entry, err error) {
	recovering := session.Recover(ctx, rd.project)
	defer func() { err = errors.Join(recovering, err) }()
	info, err := os.Stat(rd.project.Shelf().Dir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	rd.mu.Lock()
	known := rd.rescue
	rd.mu.Unlock()
	if known.reliable && known.changed.Equal(info.ModTime()) {
		return known.entries, nil
	}
	list, err := rd.project.Shelf().List(ctx)
	if err != nil {
		return list, err
	}
	rd.mu.Lock()
	rd.rescue = rescueCache{entries: list, changed: info.ModTime(), reliable: time.Since(info.ModTime()) > tick}
	rd.mu.Unlock()
	return list, nil
}

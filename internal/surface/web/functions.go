package web

import (
	"fmt"
	"html/template"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/surface/view"
	"lockkeeper/sched"
)

func (d *Dashboard) functions() template.FuncMap {
	return template.FuncMap{
		// These functions format times and numbers.
		"moment":  func(at time.Time) moment { return momentOf(at, d.now()) },
		"span":    span,
		"exact":   exact,
		"dollars": dollars,
		"counted": counted,
		"plural":  plural,
		"grouped": grouped,
		"bytes":   view.Bytes,
		"bar":     bar,
		"float":   func(n int) float64 { return float64(n) },
		"plus":    func(a, b int) int { return a + b },
		"minus":   func(a, b int64) int64 { return a - b },
		// These functions format words.
		"plain":  func(name any) string { return plain(fmt.Sprint(name)) },
		"tone":   func(status any) string { return tone(fmt.Sprint(status)) },
		"parts":  func(path string) []string { return strings.Split(path, "/") },
		"tail":   func(name string) string { return ending(name, lettersOfLane) },
		"line":   oneLine,
		"local":  func(text any) string { return lockkeeper.LocalTimes(fmt.Sprint(text)) },
		"join":   strings.Join,
		"short":  func(id string) string { return id[:min(8, len(id))] },
		"many":   func(n int, kind progress.Kind) string { return plural(n, string(kind)) },
		"modes":  modes,
		"detail": detail,
		"asked":  asked,
		"sign":   func(m view.Mark) string { return signs[m] },
		"marks": func() []view.Mark {
			return []view.Mark{view.MarkDone, view.MarkActive, view.MarkQueued, view.MarkPerson, view.MarkFailed, view.MarkWaiting, view.MarkSkipped, view.MarkOut}
		},
		"unstyled": unstyled,
		"percent":  func(share float64) string { return fmt.Sprintf("%.0f %%", math.Floor(share*100)) },
		// These functions return addresses and fields.
		"asset":       assetURL,
		"toUnit":      d.toUnit,
		"toBatch":     d.toBatch,
		"toDiff":      d.toDiff,
		"toItem":      d.toItem,
		"toLog":       d.toLog,
		"toCall":      d.toCall,
		"toLanding":   toLanding,
		"toDecision":  toDecision,
		"toDecisions": toDecisions,
		"toFirst":     toFirst,
		"itemName":    d.itemName,
		"segment":     url.PathEscape,
		"rowid":       rowID,
		"seenAs":      seenAs,
		// These functions return acts.
		"offer":     func(a view.Act) offer { return offers[a.Name].with(a) },
		"agentPool": func() string { return sched.PoolAgent },
		"slotOf":    view.SlotOf,
		"answers":   answersTo,
		"asks":      asksFor,
		"diff":      diffOf,
		"commented": commented,
		"unsent":    unsent,
		"gapRef": func(unit, batch string, n int) progress.Ref {
			return progress.Ref{Kind: progress.GapKind, Unit: unit, Batch: batch, Gap: n}
		},
		"itemRef": func(unit, item string) progress.Ref {
			return progress.Ref{Kind: progress.ItemKind, Unit: unit, Item: item}
		},
		"topicRef": func(unit, topic string) progress.Ref {
			return progress.Ref{Kind: progress.TopicKind, Unit: unit, Topic: topic}
		},
		"reviewRef": func(unit, batch string) progress.Ref {
			return progress.Ref{Kind: progress.ReviewKind, Unit: unit, Batch: batch}
		},
		"levels":   func() []flow.Level { return []flow.Level{flow.Low, flow.Medium, flow.High} },
		"flows":    flow.Names,
		"phases":   func(name string) ([]string, error) { return phasesOf(name, true) },
		"steps":    func(name string) ([]string, error) { return phasesOf(name, false) },
		"together": together,
	}
}

// rowID returns the id of a row, derived from what names the row: letters, digits and some signs stay, others are
// written as numbers.
func rowID(kind string, names ...any) string {
	var b strings.Builder
	b.WriteString(kind)
	for _, name := range names {
		if at, ok := name.(time.Time); ok {
			name = at.UnixNano()
		}
		b.WriteByte('-')
		for _, r := range fmt.Sprint(name) {
			if r < 0x7F && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("./-", r)) {
				b.WriteRune(r)
			} else {
				fmt.Fprintf(&b, "_%x_", r)
			}
		}
	}
	return b.String()
}

// signs maps the marks of the board to characters, so that marks differ even without color.
var signs = map[view.Mark]string{
	view.MarkDone: "✓", view.MarkActive: "▶", view.MarkQueued: "…", view.MarkPerson: "?", view.MarkFailed: "✕", view.MarkWaiting: "", view.MarkToCome: "·", view.MarkSkipped: "–", view.MarkOut: "∅",
}

// phasesOf returns the phases of a flow's batches if ofBatch is set, otherwise those of its units.
func phasesOf(name string, ofBatch bool) (list []string, err error) {
	f, err := flow.ByName(name)
	for _, p := range f.Phases {
		if (p.Unit == flow.BatchUnit) == ofBatch && p.Output != "" {
			list = append(list, p.Name)
		}
	}
	return list, err
}

func together(pairs ...any) (map[string]any, error) {
	if len(pairs)%2 != 0 {
		return nil, fmt.Errorf("a name without a value")
	}
	named := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		name, ok := pairs[i].(string)
		if !ok {
			return nil, fmt.Errorf("%v is not a name", pairs[i])
		}
		named[name] = pairs[i+1]
	}
	return named, nil
}

// heldPaths lists the paths that are locked in one mode.
type heldPaths struct {
	Mode  lockkeeper.Mode
	Paths []string
	More  int

	Internal int // internal locks that are only counted; then there are no paths
}

// pathsShown limits how many paths of one mode a list shows.
const pathsShown = 8

// modes groups locks by mode. It only counts internal locks, unless there are no others.
func modes(locks []view.PathLock) (list []heldPaths) {
	onlyInternal := !slices.ContainsFunc(locks, func(l view.PathLock) bool { return !l.Internal })
	internal := 0
	for _, l := range locks {
		if l.Internal && !onlyInternal {
			internal++
			continue
		}
		if len(list) == 0 || list[len(list)-1].Mode != l.Mode {
			list = append(list, heldPaths{Mode: l.Mode})
		}
		last := &list[len(list)-1]
		if len(last.Paths) == pathsShown {
			last.More++
			continue
		}
		last.Paths = append(last.Paths, l.Path)
	}
	if internal > 0 {
		list = append(list, heldPaths{Internal: internal})
	}
	return list
}

// detail returns a short description of an event: its reason, otherwise its paths.
func detail(l view.Line) string {
	const letters, paths = 240, 3
	if l.Reason != "" {
		return shortened(l.Reason, letters)
	}
	var list []string
	for _, lock := range l.Shown[:min(paths, len(l.Shown))] {
		list = append(list, lock.Path)
	}
	if more := len(l.Shown) - paths; more > 0 {
		list[paths-1] += fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(list, ", ")
}

func asked(locks []lockkeeper.Lock) (list []view.PathLock) {
	for _, l := range locks {
		list = append(list, view.PathLock{Path: l.Path, Mode: l.Mode})
	}
	return list
}

// styles matches terminal codes for colors and the cursor.
var styles = regexp.MustCompile("\x1b\\[[0-9;:?]*[@-~]")

// unstyled returns a log without terminal color codes and carriage returns.
func unstyled(text string) string {
	return styles.ReplaceAllString(strings.ReplaceAll(text, "\r\n", "\n"), "")
}

// An offer is an act for which a page shows a form.
type offer struct {
	view.Act
	Do    string // name of the act in /do/
	Field string // form field of the target
	Label string
	Asks  string // label of the note
	Note  string // form field of the note
	Must  bool   // the note is required
	Warns string // effect of the act, shown before the person confirms
	Bad   bool   // the act discards something
}

// offers maps the names of acts in package view to their forms.
var offers = map[string]offer{
	"retry":         {Do: "retry", Field: "item", Label: "Retry", Asks: "A note for the next agent", Note: "note", Warns: "It returns to the queue, at the phase in which it failed."},
	"cancel":        {Do: "cancel", Field: "item", Label: "Cancel", Asks: "Why, for the record", Note: "reason", Warns: "It leaves the queue. If it runs, it loses its locks and its processes are stopped. You can retry it.", Bad: true},
	"undo":          {Do: "undo", Field: "landing", Label: "Undo", Warns: "Its changes are undone, under locks of your own.", Bad: true},
	"land":          {Do: "land", Field: "id", Label: "Land", Warns: "It is written to its file. If that has changed since, the change is merged into it."},
	"drop":          {Do: "drop", Field: "id", Label: "Drop", Warns: "The rescued content is deleted.", Bad: true},
	"force-release": {Do: "force-release", Field: "grant", Label: "Force-release", Asks: "Why, for the record", Note: "reason", Must: true, Warns: "Its holder loses these locks, and its processes are stopped.", Bad: true},
}

// with returns the offer for one act. An unknown act has no form and shows its command.
func (o offer) with(a view.Act) offer {
	o.Act = a
	return o
}

package web

import (
	"crypto/rand"
	"fmt"
	"html/template"
	"net/url"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/surface/view"
	"lockkeeper/sched"
)

// functions returns the functions that templates can call.
func (d *Dashboard) functions() template.FuncMap {
	return template.FuncMap{
		// Times and numbers.
		"moment":  func(at time.Time) moment { return momentOf(at, d.now()) },
		"span":    span,
		"exact":   exact,
		"dollars": dollars,
		"counted": counted,
		"grouped": grouped,
		"bytes":   view.Bytes,
		"bar":     bar,
		"float":   func(n int) float64 { return float64(n) },
		"plus":    func(a, b int) int { return a + b },
		"minus":   func(a, b int64) int64 { return a - b },
		// Words.
		"plain":  func(name any) string { return plain(fmt.Sprint(name)) },
		"tone":   func(status any) string { return tone(fmt.Sprint(status)) },
		"parts":  func(path string) []string { return strings.Split(path, "/") },
		"tail":   func(name string) string { return ending(name, lettersOfLane) },
		"line":   oneLine,
		"join":   strings.Join,
		"short":  func(id string) string { return id[:min(8, len(id))] },
		"many":   func(n int, kind progress.Kind) string { return plural(n, string(kind)) },
		"modes":  modes,
		"detail": detail,
		"asked":  asked,
		"sign":   func(m view.Mark) string { return signs[m] },
		"marks": func() []view.Mark {
			return []view.Mark{view.MarkDone, view.MarkActive, view.MarkQueued, view.MarkPerson, view.MarkFailed, view.MarkWaiting}
		},
		"unstyled": unstyled,
		// Addresses and fields.
		"asset":   d.files.url,
		"segment": url.PathEscape,
		"key":     rand.Text,
		"seenAs":  seenAs,
		// Acts.
		"offer":     func(a view.Act) offer { return offers[a.Name].with(a) },
		"agentPool": func() string { return sched.PoolAgent },
		"answers":   answersTo,
		"asks":      asksFor,
		"diff":      diffOf,
		"gapRef": func(unit, batch string, n int) progress.Ref {
			return progress.Ref{Kind: progress.GapKind, Unit: unit, Batch: batch, Gap: n}
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

// signs are what the marks of the board look like: they differ without their colours.
var signs = map[view.Mark]string{
	view.MarkDone: "✓", view.MarkActive: "▶", view.MarkQueued: "…", view.MarkPerson: "?", view.MarkFailed: "✕", view.MarkWaiting: "", view.MarkToCome: "·",
}

// phasesOf are the phases that a batch of a flow goes through, or else those of a unit.
func phasesOf(name string, ofBatch bool) (list []string, err error) {
	f, err := flow.ByName(name)
	for _, p := range f.Phases {
		if (p.Unit == flow.BatchUnit) == ofBatch && p.Output != "" {
			list = append(list, p.Name)
		}
	}
	return list, err
}

// together hands several values to a template, under names.
func together(pairs ...any) (map[string]any, error) {
	if len(pairs)%2 != 0 {
		return nil, fmt.Errorf("a name without a value")
	}
	named := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		name, ok := pairs[i].(string)
		if !ok {
			return nil, fmt.Errorf("%v is no name", pairs[i])
		}
		named[name] = pairs[i+1]
	}
	return named, nil
}

// heldPaths are the paths that are held in one mode.
type heldPaths struct {
	Mode  lockkeeper.Mode
	Paths []string
	More  int
}

// pathsShown is how many paths of one mode a list shows.
const pathsShown = 8

// modes groups locks by their modes, as they come.
func modes(locks []view.PathLock) (list []heldPaths) {
	for _, l := range locks {
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
	return list
}

// detail is what an event was about, in a few words: what was said with it, or else the
// paths.
func detail(l view.Line) string {
	const letters, paths = 240, 3
	if l.Reason != "" {
		return shortened(l.Reason, letters)
	}
	var list []string
	for _, lock := range l.Locks[:min(paths, len(l.Locks))] {
		list = append(list, lock.Path)
	}
	text := strings.Join(list, ", ")
	if more := len(l.Locks) - paths; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// asked is locks as lists show them.
func asked(locks []lockkeeper.Lock) (list []view.PathLock) {
	for _, l := range locks {
		list = append(list, view.PathLock{Path: l.Path, Mode: l.Mode})
	}
	return list
}

// fileDiff is what changes in a file, line by line.
type fileDiff struct {
	view.FileDiff
	Lines []diffLine
	Left  int
}

func diffOf(d *view.Diff) (list []fileDiff) {
	for _, f := range d.Files {
		lines, left := linesOf(f.Text)
		list = append(list, fileDiff{FileDiff: f, Lines: lines, Left: left})
	}
	return list
}

// unstyled is a log without what colours it on a terminal, and without the other half of
// its line ends.
func unstyled(text string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if !strings.Contains(text, "\x1b[") {
		return text
	}
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, "\x1b[")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		end := strings.IndexFunc(after, func(r rune) bool { return r >= '@' && r <= '~' })
		if end < 0 || strings.Trim(after[:end], "0123456789;:?") != "" { // something else that begins so
			b.WriteString("\x1b[")
			text = after
			continue
		}
		text = after[end+1:]
	}
}

// offer is an act as a form offers it.
type offer struct {
	view.Act
	Do    string // the act at /do/
	Field string // the target's name in the form
	Label string
	Asks  string // what the person may say with it
	Note  string // the name of that field
	Must  bool   // they have to say it
	Warns string // what it does, for an act that is asked about first
	Bad   bool   // something is lost by it
}

// offers are the acts that pages offer on what they show, by the names that view has.
var offers = map[string]offer{
	"retry":         {Do: "retry", Field: "item", Label: "Retry", Asks: "A note for the next agent", Note: "note", Warns: "It returns to the queue, at the phase in which it failed."},
	"cancel":        {Do: "cancel", Field: "item", Label: "Cancel", Asks: "Why, for the record", Note: "reason", Warns: "It leaves the queue. If it runs, it loses its locks and its processes are stopped. You can retry it.", Bad: true},
	"undo":          {Do: "undo", Field: "landing", Label: "Undo", Warns: "Its changes are undone, under locks of your own.", Bad: true},
	"land":          {Do: "land", Field: "id", Label: "Land", Warns: "It is written to its file, if that has not changed since."},
	"drop":          {Do: "drop", Field: "id", Label: "Drop", Warns: "The rescued content is deleted.", Bad: true},
	"force-release": {Do: "force-release", Field: "grant", Label: "Revoke", Asks: "Why, for the record", Note: "reason", Must: true, Warns: "Its holder loses these locks, and its processes are stopped.", Bad: true},
}

// with is the offer of one act. One that is not known has no form: it shows its command.
func (o offer) with(a view.Act) offer {
	o.Act = a
	return o
}

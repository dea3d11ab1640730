package view

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/run"
)

// papers is what the documents of a flow say.
type papers struct {
	flow    flow.Flow
	book    *progress.Tracker
	screens map[string][]flow.ManifestScreen
	units   []*unit // in order
	problem string  // why not all units may have been found
}

// unit is a unit as it was read.
type unit struct {
	*progress.Unit // nil: it cannot be read
	name           string
	gates          []progress.Decision
	unread         error

	print   []byte // of the files that it was read from
	settled bool   // they were that old when they were read that no change can have been missed
}

// tick is longer than that of any clock by which disks date what changes.
const tick = 2 * time.Second

// papers reads the documents of a flow. Units whose files are as they were are not read
// again.
func (l *Look) papers(ctx context.Context, flowName string) (*papers, error) {
	return share(ctx, &l.flights, "papers "+flowName, func(ctx context.Context) (*papers, error) { return l.readPapers(ctx, flowName) })
}

func (l *Look) readPapers(ctx context.Context, flowName string) (*papers, error) {
	book, f, docs, err := conduct.OpenDocuments(l.app, flowName)
	if err != nil {
		return nil, err
	}
	names, err := conduct.Units(ctx, f, docs)
	if err != nil {
		return nil, err
	}
	d := l.discovered(f.Name)
	p := &papers{flow: f, book: book, screens: d.screens, problem: d.problem}
	known := map[string]bool{}
	for _, name := range d.units {
		known[name] = true
	}
	names = slices.DeleteFunc(names, func(name string) bool { return known[name] })
	names = append(slices.Clone(d.units), names...) // what only has documents comes last
	p.units = make([]*unit, len(names))
	eachOf(len(names), func(i int) {
		p.units[i] = l.unit(ctx, book, f.Name, names[i], docs.Unit(names[i]).Dir())
	})
	return p, context.Cause(ctx)
}

// eachOf does something for each of n, on all processors.
func eachOf(n int, do func(i int)) {
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	workers.Wait()
}

// unit reads a unit, unless it is as it was.
func (l *Look) unit(ctx context.Context, book *progress.Tracker, flowName, name, dir string) *unit {
	key := flowName + "\x00" + dir
	print, newest, err := fingerprint(dir, documentsDeep)
	if err != nil {
		return &unit{name: name, unread: err}
	}
	l.mu.Lock()
	known := l.units[key]
	l.mu.Unlock()
	if known != nil && known.settled && bytes.Equal(known.print, print) {
		return known
	}
	u := &unit{name: name, print: print, settled: time.Since(newest) > tick}
	if u.Unit, u.unread = book.Unit(ctx, name); u.unread != nil {
		return u
	}
	u.gates = u.OpenDecisions()
	l.mu.Lock()
	l.units[key] = u
	l.mu.Unlock()
	return u
}

// documentsDeep is how deep below a unit's folder documents are: batches/<id>/<document>.
const documentsDeep = 2

// fingerprint tells one state of a unit's folder from another: by names, sizes and times
// of what is in it, so deep. Newest is when any of it last changed. No link is followed.
func fingerprint(dir string, deep int) (print []byte, newest time.Time, err error) {
	own, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) { // it has none yet
		return nil, newest, nil
	}
	if err != nil {
		return nil, newest, err
	}
	print, newest = mark(nil, own), own.ModTime()
	if !own.IsDir() {
		return print, newest, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, newest, err
	}
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() {
			if deep == 0 || name == "earlier" || name == "files" {
				continue // what is kept there is no document
			}
			below, last, err := fingerprint(filepath.Join(dir, name), deep-1)
			if err != nil {
				return nil, newest, err
			}
			print, newest = append(print, below...), later(newest, last)
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // somebody replaces it, which changes the folder
		}
		if err != nil {
			return nil, newest, err
		}
		print, newest = mark(print, info), later(newest, info.ModTime())
	}
	return print, newest, nil
}

// mark adds a file to a fingerprint.
func mark(print []byte, info fs.FileInfo) []byte {
	print = append(append(print, info.Name()...), 0)
	for _, n := range []int64{int64(info.Mode()), info.Size(), info.ModTime().UnixNano()} {
		print = binary.AppendVarint(print, n)
	}
	return print
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// discovery is the units that a flow finds in the codebase.
type discovery struct {
	units   []string
	screens map[string][]flow.ManifestScreen
	problem string
	at      time.Time
}

// discoverEvery is how often the codebase is searched for units: new ones are rare, and
// the search goes through all of it.
const discoverEvery = 5 * time.Second

func (l *Look) discovered(flowName string) discovery {
	l.mu.Lock()
	d, known := l.found[flowName]
	l.mu.Unlock()
	if known && time.Since(d.at) < discoverEvery {
		return d
	}
	d = discovery{at: time.Now()}
	var err error
	if d.units, d.screens, err = conduct.Discovered(l.app, flowName); err != nil {
		d.problem = err.Error()
	}
	l.mu.Lock()
	l.found[flowName] = d
	l.mu.Unlock()
	return d
}

// states says where every unit is, by its documents and by the items of the queue that
// are not completed. One that cannot be read has no status but that.
func (p *papers) states(items map[string][]*lockkeeper.Item) []run.UnitState {
	sight := run.Overlay{Flow: p.flow, Screens: p.screens}
	states := make([]run.UnitState, len(p.units))
	for i, u := range p.units {
		if u.Unit == nil {
			states[i] = run.UnitState{Name: u.name, Status: flow.Failed, Error: "its documents cannot be read: " + u.unread.Error()}
			continue
		}
		states[i] = sight.Unit(u.Unit, items[u.name])
		if states[i].Item == "" && len(u.Documents)+len(u.Malformed) == 0 && p.screens == nil {
			states[i].Status = flow.Idle // nobody has asked for it yet
		}
	}
	return states
}

// gates lists what waits for a person, in the order in which it is best answered.
func (p *papers) gates() []progress.Decision {
	var all []progress.Decision
	for _, u := range p.units {
		all = append(all, u.gates...)
	}
	return progress.SortDecisions(all)
}

// find finds a unit.
func (p *papers) find(name string) (*unit, bool) {
	at := slices.IndexFunc(p.units, func(u *unit) bool { return u.name == name })
	if at < 0 {
		return nil, false
	}
	return p.units[at], true
}

// failures lists the failed work that is still to be done.
func (p *papers) failures(items map[string][]*lockkeeper.Item) []run.Failure {
	known := map[string][]*lockkeeper.Item{}
	for _, u := range p.units {
		if u.Unit != nil {
			known[u.name] = items[u.name]
		}
	}
	list, _ := run.FailuresIn(p.flow, known, func(name string) (*progress.Unit, error) { // which all are read
		u, _ := p.find(name)
		return u.Unit, nil
	})
	return list
}

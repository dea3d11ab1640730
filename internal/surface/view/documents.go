package view

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/run"
	"lockkeeper/store"
)

// documents is the documents of a flow, as read.
type documents struct {
	flow    flow.Flow
	tracker *progress.Tracker
	screens map[string][]flow.ManifestScreen
	units   []*unit // in order
	problem string  // why units may be missing
}

// unit is a unit as read from its documents.
type unit struct {
	*progress.Unit // nil: the documents of the unit cannot be read
	name           string
	open           []progress.Decision
	err            error

	print    []byte // fingerprint of the files from which the unit was read
	reliable bool   // the files were older than tick, so no change can have been missed
}

// tick is longer than the resolution of any file system's timestamps.
const tick = 2 * time.Second

// documents reads the documents of a flow. Unchanged units are not read again.
func (rd *Reader) documents(ctx context.Context, flowName string) (*documents, error) {
	return share(ctx, &rd.shared, "documents "+flowName, func(ctx context.Context) (*documents, error) { return rd.readDocuments(ctx, flowName) })
}

func (rd *Reader) readDocuments(ctx context.Context, flowName string) (*documents, error) {
	tracker, f, docs, err := conduct.OpenDocuments(rd.project, flowName)
	if err != nil {
		return nil, err
	}
	names, err := conduct.Units(ctx, f, docs)
	if err != nil {
		return nil, err
	}
	d := rd.discovered(f.Name)
	p := &documents{flow: f, tracker: tracker, screens: d.screens, problem: d.problem}
	known := map[string]bool{}
	for _, name := range d.units {
		known[name] = true
	}
	names = slices.DeleteFunc(names, func(name string) bool { return known[name] })
	names = append(slices.Clone(d.units), names...) // units that exist only as documents come last
	p.units = make([]*unit, len(names))
	eachOf(len(names), func(i int) {
		p.units[i] = rd.unit(ctx, tracker, f.Name, names[i], docs.Unit(names[i]).Dir())
	})
	return p, context.Cause(ctx)
}

func (rd *Reader) lastDocuments(ctx context.Context) (*documents, error) {
	name, err := conduct.LastFlow(rd.project, "")
	if err != nil {
		return nil, err
	}
	return rd.documents(ctx, name)
}

// eachBatch yields the batches of all units that can be read.
func (p *documents) eachBatch(yield func(*unit, *progress.Batch) bool) {
	for _, u := range p.units {
		for i := 0; u.Unit != nil && i < len(u.Batches); i++ {
			if !yield(u, &u.Batches[i]) {
				return
			}
		}
	}
}

// eachOf calls the function do for 0 to n-1, on all processors.
func eachOf(n int, do func(i int)) {
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	workers.Wait()
}

// unit returns a unit, and reads it only if its files changed.
func (rd *Reader) unit(ctx context.Context, tracker *progress.Tracker, flowName, name, dir string) *unit {
	key := flowName + "\x00" + dir
	print, newest, err := fingerprint(dir)
	if err != nil {
		return &unit{name: name, err: err}
	}
	rd.mu.Lock()
	known := rd.units[key]
	rd.mu.Unlock()
	if known != nil && known.reliable && bytes.Equal(known.print, print) {
		return known
	}
	u := &unit{name: name, print: print, reliable: time.Since(newest) > tick}
	if u.Unit, u.err = tracker.Unit(ctx, name); u.err != nil {
		return u
	}
	u.open = u.OpenDecisions()
	rd.mu.Lock()
	rd.units[key] = u
	rd.mu.Unlock()
	return u
}

// documentsDeep is how deep below a unit's folder documents are: batches/<id>/<document>.
const documentsDeep = 2

// fingerprint identifies the state of a unit's folder by the names, sizes and times of its
// files. newest is the latest change. Links are not followed.
func fingerprint(dir string) (print []byte, newest time.Time, err error) {
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		deep := strings.Count(path[len(dir):], string(filepath.Separator))
		if err == nil && e.IsDir() && (deep > documentsDeep || deep > 0 && (e.Name() == "earlier" || e.Name() == "files")) {
			return fs.SkipDir // these directories hold no documents
		}
		var info fs.FileInfo
		if err == nil {
			info, err = e.Info()
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the unit has no documents yet, or a file is being replaced, which changes the folder
		}
		if err == nil {
			print, newest = mark(print, info), later(newest, info.ModTime())
		}
		return err
	})
	return print, newest, err
}

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

// discovery is the units that a flow found in the codebase.
type discovery struct {
	units   []string
	screens map[string][]flow.ManifestScreen
	problem string
}

// discoverEvery limits how often the codebase is searched for units. New units are rare,
// and the search reads the whole tree.
const discoverEvery = 5 * time.Second

func (rd *Reader) discovered(flowName string) discovery {
	last, _ := rd.found.LoadOrStore(flowName, &kept[discovery]{})
	return last.(*kept[discovery]).get(discoverEvery, func() (d discovery) {
		var err error
		if d.units, d.screens, err = conduct.Discovered(rd.project, flowName); err != nil {
			d.problem = err.Error()
		}
		return d
	})
}

// states returns the state of every unit from its documents and its open queue items. A
// unit that cannot be read is failed.
func (p *documents) states(items map[string][]*lockkeeper.Item) []run.UnitState {
	states := make([]run.UnitState, len(p.units))
	for i, u := range p.units {
		states[i] = p.state(u, items[u.name])
	}
	return states
}

// state returns the state of a unit from its documents and its open queue items.
func (p *documents) state(u *unit, items []*lockkeeper.Item) run.UnitState {
	if u.Unit == nil {
		return run.UnitState{Name: u.name, WorkState: run.WorkState{Status: flow.Failed, Error: "its documents cannot be read: " + u.err.Error()}}
	}
	at := run.Overlay{Flow: p.flow, Screens: p.screens}.Unit(u.Unit, items)
	queueForSlots(at.Batches, items)
	if at.Item == "" && len(u.Documents)+len(u.Malformed) == 0 && p.screens == nil {
		at.Status = flow.Idle // no run has started the unit yet
	}
	return at
}

// queueForSlots gives batches that hold their locks and wait for the slot of an agent or a test the
// status of batches that wait in the queue.
func queueForSlots(batches []run.BatchState, items []*lockkeeper.Item) {
	for _, it := range items {
		if _, waits := store.PoolOf(it, it.WaitsOn); !waits || !it.IsHolding() || it.Stage == lockkeeper.StageRunning {
			continue
		}
		if b := slices.IndexFunc(batches, func(b run.BatchState) bool { return b.Item == it.ID }); b >= 0 {
			batches[b].Status, batches[b].Pending = flow.Queued, it.Phase
		}
	}
}

// open returns the open decisions, the most useful ones first.
func (p *documents) open() []progress.Decision {
	var all []progress.Decision
	for _, u := range p.units {
		all = append(all, u.open...)
	}
	return progress.SortDecisions(all)
}

func (p *documents) find(name string) (*unit, bool) {
	at := slices.IndexFunc(p.units, func(u *unit) bool { return u.name == name })
	if at < 0 {
		return nil, false
	}
	return p.units[at], true
}

// failures lists failed work that is not done yet.
func (p *documents) failures(items map[string][]*lockkeeper.Item) []run.Failure {
	known := map[string][]*lockkeeper.Item{}
	for _, u := range p.units {
		if u.Unit != nil {
			known[u.name] = items[u.name]
		}
	}
	list, _ := run.FailuresIn(p.flow, known, func(name string) (*progress.Unit, error) { // all units have been read
		u, _ := p.find(name)
		return u.Unit, nil
	})
	return list
}

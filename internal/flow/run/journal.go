package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"lockkeeper/internal/flow/sidecar"
)

// Journal reads what agents and checks leave in a folder of calls, for somebody who looks
// often: what cannot change any more is read once. It may be used by several goroutines.
type Journal struct {
	dir string

	mu       sync.Mutex
	purposes map[string]*purpose // by the names of their folders
}

// OpenJournal names a folder of calls, which need not be there.
func OpenJournal(dir string) *Journal {
	return &Journal{dir: dir, purposes: map[string]*purpose{}}
}

// A PastDecision is a call of an agent, or a run of a check.
type Entry struct {
	Trace
	Item string    // that it was made for; empty: not known
	Dir  string    // its folder
	Call *PastCall // nil: it is a check, or has not ended
}

// purpose is a folder with all entries for one purpose.
type purpose struct {
	dir     string
	flow    string
	work    string
	phase   string
	entries map[int]*entry

	changed time.Time // when its list of entries was
	settled bool      // it was read so late after that that no change of the same tick can have been missed
}

// entry is an Entry as far as it was read.
type entry struct {
	Entry
	named bool // it is known for which item it was made
	ended bool // its record is read
	timed bool // its times are read and cannot change
}

// tick is longer than that of any clock by which disks date what changes.
const tick = 2 * time.Second

// Calls lists the calls of agents for a flow that have ended. Beside an error it lists
// those that can be read.
func (j *Journal) Calls(flowName string) ([]PastCall, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	list := []PastCall{}
	err := j.each(flowName, func(p *purpose, e *entry) error {
		if p.isCheck() {
			return nil
		}
		if err := e.readRecord(p); err != nil {
			return err
		}
		if e.Call != nil {
			list = append(list, *e.Call)
		}
		return nil
	})
	slices.SortStableFunc(list, func(a, b PastCall) int { return a.Began.Compare(b.Began) })
	return list, err
}

// Entries lists all calls and checks for a flow in the order in which they began. Beside
// an error it lists those that can be read.
func (j *Journal) Entries(flowName string) ([]Entry, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var list []*entry
	err := j.each(flowName, func(p *purpose, e *entry) error {
		if err := errors.Join(e.readItem(), e.readRecord(p)); err != nil {
			return err
		}
		if err := e.readTimes(); errors.Is(err, fs.ErrNotExist) {
			return nil // it is just being made, or cleared away
		} else if err != nil {
			return err
		}
		list = append(list, e)
		return nil
	})
	slices.SortStableFunc(list, func(a, b *entry) int { return a.Began.Compare(b.Began) })
	last := map[string]*entry{} // by work, which does one thing at a time
	out := make([]Entry, len(list))
	for i, e := range list {
		if before := last[e.Work]; before != nil {
			before.timed = true
		}
		last[e.Work] = e
		out[i] = e.Entry
	}
	return out, err
}

// each visits what there is of a flow. One entry that cannot be read hides no other.
func (j *Journal) each(flowName string, visit func(*purpose, *entry) error) error {
	folders, err := os.ReadDir(j.dir)
	if errors.Is(err, fs.ErrNotExist) {
		folders, err = nil, nil
	}
	if err != nil {
		return err
	}
	var wrong []error
	there := map[string]bool{}
	for _, f := range folders {
		there[f.Name()] = true
		p := j.purposes[f.Name()]
		if p == nil {
			p = newPurpose(filepath.Join(j.dir, f.Name()))
			j.purposes[f.Name()] = p
		}
		if p.flow != flowName {
			continue
		}
		if err := p.list(); err != nil {
			wrong = append(wrong, err)
		}
		for _, e := range p.entries {
			if err := visit(p, e); err != nil {
				wrong = append(wrong, err)
			}
		}
	}
	for name := range j.purposes {
		if !there[name] {
			delete(j.purposes, name)
		}
	}
	return errors.Join(wrong...)
}

// newPurpose reads the name of a folder. One that is no purpose belongs to no flow.
func newPurpose(dir string) *purpose {
	p := &purpose{dir: dir, entries: map[int]*entry{}}
	name, _ := sidecar.UnitName(filepath.Base(dir))
	if p.flow = flowOfPurpose(name); p.flow != "" {
		p.work, p.phase = workIn(name)
	}
	return p
}

func (p *purpose) isCheck() bool { return Trace{Phase: p.phase}.IsCheck() }

// list finds the entries of a purpose, if any came or went.
func (p *purpose) list() error {
	info, err := os.Stat(p.dir)
	if errors.Is(err, fs.ErrNotExist) { // somebody clears it away
		clear(p.entries)
		return nil
	}
	if err != nil || p.settled && info.ModTime().Equal(p.changed) {
		return err
	}
	found, err := os.ReadDir(p.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	p.changed, p.settled = info.ModTime(), time.Since(info.ModTime()) > tick
	there := map[int]bool{}
	for _, f := range found {
		n, err := strconv.Atoi(f.Name())
		if err != nil {
			continue // nobody's
		}
		there[n] = true
		if p.entries[n] == nil {
			p.entries[n] = &entry{Entry: Entry{Trace: Trace{Work: p.work, Phase: p.phase}, Dir: filepath.Join(p.dir, f.Name())}}
		}
	}
	for n := range p.entries {
		if !there[n] {
			delete(p.entries, n)
		}
	}
	return nil
}

// readRecord finds out whether a call has ended, and how: once.
func (e *entry) readRecord(p *purpose) error {
	if e.ended || p.isCheck() {
		return nil
	}
	rec, err := trace{dir: e.Dir}.record()
	if err != nil {
		return fmt.Errorf("the record of a call: %w", err)
	}
	if rec == nil {
		return nil
	}
	e.Call, e.ended = &PastCall{Call: rec.Call, Flow: p.flow, Unit: rec.Unit, Run: rec.Run}, true
	return nil
}

// readItem finds out for which item something was made: once.
func (e *entry) readItem() error {
	if e.named {
		return nil
	}
	id, err := os.ReadFile(filepath.Join(e.Dir, itemFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	e.Item, e.named = strings.TrimSpace(string(id)), err == nil
	return err
}

// readTimes finds out when something began, and when it last said something. A call that
// has ended says nothing more, and neither does a check behind which something came.
func (e *entry) readTimes() (err error) {
	if e.timed {
		return nil
	}
	if e.Trace, err = readTrace(e.Dir); err == nil {
		e.timed = e.ended
	}
	return err
}

// Said is when an entry last said something, and where that is; empty: nothing yet.
func (e Entry) Said() (path string, at time.Time, err error) {
	for _, name := range []string{livelogFile, outputFile} {
		if name == outputFile && !e.IsCheck() {
			continue // of an agent, which speaks a protocol
		}
		info, err := os.Stat(filepath.Join(e.Dir, name))
		if err == nil {
			return filepath.Join(e.Dir, name), info.ModTime(), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", time.Time{}, err
		}
	}
	return "", time.Time{}, nil
}

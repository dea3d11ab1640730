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

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/documents"
)

// A Journal reads the records of agent calls and checks. It caches records that are final, for
// callers that read often. It is safe for concurrent use.
type Journal struct {
	dir string

	mu       sync.Mutex
	purposes map[string]*purpose // by the names of their folders
}

// OpenJournal opens the journal of a folder of calls, which need not exist.
func OpenJournal(dir string) *Journal {
	return &Journal{dir: dir, purposes: map[string]*purpose{}}
}

// A CallRecord describes a call of an agent, or a run of a check.
type CallRecord struct {
	Trace
	Item string    // the item of the call; empty: unknown
	Dir  string    // the folder of the call
	Call *PastCall // nil for a check, and for a call that has not ended
}

// A purpose is the folder of all calls for one purpose.
type purpose struct {
	dir   string
	flow  string
	work  string
	phase string
	calls map[int]*cachedCall

	changed time.Time // the modification time of the folder when it was listed
	settled bool      // it was listed more than a tick after changed, so no change was missed
}

// A cachedCall is a CallRecord with the parts read so far.
type cachedCall struct {
	CallRecord
	named bool // its item is read
	ended bool // its record is read
	timed bool // its times are read and final
}

// tick is longer than the resolution of file times on any disk.
const tick = 2 * time.Second

// Calls lists the ended agent calls of a flow. If it returns an error, it also returns the calls
// that it could read.
func (j *Journal) Calls(flowName string) ([]PastCall, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	list := []PastCall{}
	err := j.each(flowName, func(p *purpose, e *cachedCall) error {
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

// All lists the calls and checks of a flow in the order in which they began. If it returns an
// error, it also returns the calls that it could read.
func (j *Journal) All(flowName string) ([]CallRecord, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var list []*cachedCall
	err := j.each(flowName, func(p *purpose, e *cachedCall) error {
		if err := errors.Join(e.readItem(), e.readRecord(p)); err != nil {
			return err
		}
		if err := e.readTimes(); errors.Is(err, fs.ErrNotExist) {
			return nil // another process is creating or removing it
		} else if err != nil {
			return err
		}
		list = append(list, e)
		return nil
	})
	slices.SortStableFunc(list, func(a, b *cachedCall) int { return a.Began.Compare(b.Began) })
	last := map[string]*cachedCall{} // by work, since each makes one call at a time
	out := make([]CallRecord, len(list))
	for i, e := range list {
		if before := last[e.Work]; before != nil {
			before.timed = true
		}
		last[e.Work] = e
		out[i] = e.CallRecord
	}
	return out, err
}

// each visits the calls of a flow. An unreadable call does not hide the others.
func (j *Journal) each(flowName string, visit func(*purpose, *cachedCall) error) error {
	folders, err := os.ReadDir(j.dir)
	if errors.Is(err, fs.ErrNotExist) {
		folders, err = nil, nil
	}
	if err != nil {
		return err
	}
	var errs []error
	found := map[string]bool{}
	for _, f := range folders {
		found[f.Name()] = true
		p := j.purposes[f.Name()]
		if p == nil {
			p = newPurpose(filepath.Join(j.dir, f.Name()))
			j.purposes[f.Name()] = p
		}
		if p.flow != flowName {
			continue
		}
		if err := p.list(); err != nil {
			errs = append(errs, err)
		}
		for _, e := range p.calls {
			if err := visit(p, e); err != nil {
				errs = append(errs, err)
			}
		}
	}
	for name := range j.purposes {
		if !found[name] {
			delete(j.purposes, name)
		}
	}
	return errors.Join(errs...)
}

// newPurpose parses the name of a folder. If the name is not a purpose, flow stays empty.
func newPurpose(dir string) *purpose {
	p := &purpose{dir: dir, calls: map[int]*cachedCall{}}
	name, _ := documents.UnitName(filepath.Base(dir))
	if p.flow = flowOfPurpose(name); p.flow != "" {
		p.work, p.phase = workIn(name)
	}
	return p
}

func (p *purpose) isCheck() bool { return Trace{Phase: p.phase}.IsCheck() }

// list lists the calls of a purpose again if its folder changed.
func (p *purpose) list() error {
	info, err := os.Stat(p.dir)
	if errors.Is(err, fs.ErrNotExist) { // another process removes it
		clear(p.calls)
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
			continue // not a call
		}
		there[n] = true
		if p.calls[n] == nil {
			p.calls[n] = &cachedCall{CallRecord: CallRecord{Trace: Trace{Work: p.work, Phase: p.phase}, Dir: filepath.Join(p.dir, f.Name())}}
		}
	}
	for n := range p.calls {
		if !there[n] {
			delete(p.calls, n)
		}
	}
	return nil
}

// readRecord reads the record of a call once it has ended.
func (e *cachedCall) readRecord(p *purpose) error {
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

// readItem reads the item of a call.
func (e *cachedCall) readItem() error {
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

// readTimes reads when a call began and when it last wrote output. The times are final once the
// call has ended, or a later call of the same work began.
func (e *cachedCall) readTimes() (err error) {
	if e.timed {
		return nil
	}
	if e.Trace, err = readTrace(e.Dir); err == nil {
		e.timed = e.ended
	}
	return err
}

// Said returns the output of a call for people and the time when it last grew. The path is empty
// if there is no output yet.
func (e CallRecord) Said() (path string, at time.Time, err error) {
	for _, name := range []string{livelogFile, outputFile} {
		if name == outputFile && !e.IsCheck() {
			continue // the output of an agent is a protocol
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

// A Trace records when an agent or a check ran, and for which work.
type Trace struct {
	Work  string // the unit, or unit/part
	Phase string
	Began time.Time
	Ended time.Time // the time of its last output
	Cut   bool      // the agent was interrupted
}

// IsCheck reports whether the trace is of a test or CI command, not of an agent.
func (t Trace) IsCheck() bool { return flow.IsCheck(t.Phase) }

// Traces lists the traces of agents and checks in the order in which they began. Dir is the
// folder of calls.
func Traces(dir string) ([]Trace, error) {
	names, err := tracesWith(dir, workspaceFile)
	if err != nil {
		return nil, err
	}
	var list []Trace
	for _, name := range names {
		t, err := readTrace(filepath.Dir(name))
		if err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b Trace) int { return a.Began.Compare(b.Began) })
	return list, nil
}

func readTrace(dir string) (Trace, error) {
	purpose, _ := documents.UnitName(filepath.Base(filepath.Dir(dir)))
	work, phase := workIn(purpose)
	t := Trace{Work: work, Phase: phase}
	begun, err := os.Stat(filepath.Join(dir, workspaceFile))
	if err != nil {
		return t, err
	}
	t.Began, t.Ended = begun.ModTime(), begun.ModTime()
	said, err := os.Stat(filepath.Join(dir, outputFile))
	switch {
	case err == nil:
		t.Ended = said.ModTime()
	case !errors.Is(err, fs.ErrNotExist):
		return t, err
	}
	if t.IsCheck() {
		return t, nil
	}
	rec, err := trace{dir: dir}.record()
	t.Cut = rec == nil || rec.Error == errCutShort.Error()
	return t, err
}

// workIn returns the work and the phase in a purpose.
func workIn(purpose string) (work, phase string) {
	_, work, _ = strings.Cut(purpose, "/") // removes the flow
	if i := strings.LastIndexByte(work, '/'); i >= 0 {
		work, phase = work[:i], work[i+1:]
	}
	phase, _, _ = strings.Cut(phase, "@") // removes the digest of the batch's definition
	return work, phase
}

// flowOfPurpose returns the flow that a purpose belongs to, or "" for none. The purpose of
// a research call names no flow, since only one flow researches topics.
func flowOfPurpose(purpose string) string {
	name, _, _ := strings.Cut(purpose, "/")
	if name == "research" {
		return flow.ForResearch().Name
	}
	return name
}

// A PastCall is an ended call of an agent.
type PastCall struct {
	flow.Call
	Flow string `json:"flow"`
	Unit string `json:"unit"`
	Run  string `json:"run"`
}

// FlowOf returns the flow of an item, or "" if the item belongs to no flow.
func FlowOf(it *lockkeeper.Item) string {
	name, ok := strings.CutPrefix(it.Root, rootPrefix)
	if !ok {
		return ""
	}
	return name
}

// LastLog opens the log of the last agent that worked for an item. It returns fs.ErrNotExist if
// there is no log. Dir is the folder of calls.
func LastLog(dir, item string) (*os.File, error) {
	logs, err := tracesWith(dir, livelogFile)
	if err != nil {
		return nil, err
	}
	last, at := "", time.Time{}
	for _, log := range logs {
		whose, err := os.ReadFile(filepath.Join(filepath.Dir(log), itemFile))
		if err != nil {
			return nil, err
		}
		info, err := os.Stat(log)
		if err != nil {
			return nil, err
		}
		if string(whose) == item && info.ModTime().After(at) {
			last, at = log, info.ModTime()
		}
	}
	if last == "" {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: fs.ErrNotExist}
	}
	return os.Open(last)
}

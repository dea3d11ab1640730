package run

import (
	"bytes"
	"encoding/json"
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
	"lockkeeper/internal/agent"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/documents"
)

// A Journal reads the records of agent calls and checks. It reads those that have ended only once,
// for callers that read often. It is safe for concurrent use.
type Journal struct {
	dir string

	mu    sync.Mutex
	known map[string]*purposeCalls // by folder
}

// purposeCalls has the calls for one purpose, as read.
type purposeCalls struct {
	flow    string
	calls   []CallRecord
	ended   map[string]CallRecord // those that have ended, by folder
	changed time.Time             // when the folder of the purpose changed
	settled bool                  // all calls have ended, and no new one can have been missed
}

// OpenJournal opens the journal of a folder of calls, which need not exist.
func OpenJournal(dir string) *Journal {
	return &Journal{dir: dir, known: map[string]*purposeCalls{}}
}

// A CallRecord describes a call of an agent, or a run of a check.
type CallRecord struct {
	Trace
	Item string    // the item of the call; empty: unknown
	Dir  string    // the folder of the call
	Call *PastCall // nil for a check, and for a call that has not ended

	Checked bool // it is a check that has ended
}

// A Trace records when an agent or a check ran, and for which work.
type Trace struct {
	Work  string // the unit, or unit/part
	Phase string
	Asked time.Time // since when it waited for its slot; zero: not recorded
	Began time.Time // when it had its slot; of a check that has not ended, when it was asked for. Zero: another process is creating or removing the folder
	Ended time.Time // the time of the last output
	Cut   bool      // the agent was interrupted
}

// IsCheck reports whether the trace is of a test or CI command, not of an agent.
func (t Trace) IsCheck() bool { return flow.IsCheck(t.Phase) }

// A PastCall is an ended call of an agent.
type PastCall struct {
	flow.Call
	Flow string `json:"flow"`
	Unit string `json:"unit"`
	Run  string `json:"run"`
}

// Calls lists the ended agent calls of a flow. If it returns an error, it also returns the calls
// that it could read.
func (j *Journal) Calls(flowName string) ([]PastCall, error) {
	list := []PastCall{}
	all, err := j.read(flowName)
	for _, e := range all {
		if e.Call != nil {
			list = append(list, *e.Call)
		}
	}
	slices.SortStableFunc(list, func(a, b PastCall) int { return a.Began.Compare(b.Began) })
	return list, err
}

// All lists the calls and checks of a flow in the order in which they began. If it returns an
// error, it also returns the calls that it could read.
func (j *Journal) All(flowName string) ([]CallRecord, error) {
	all, err := j.read(flowName)
	all = slices.DeleteFunc(all, func(e CallRecord) bool { return e.Began.IsZero() })
	slices.SortStableFunc(all, func(a, b CallRecord) int { return a.Began.Compare(b.Began) })
	return all, err
}

// read reads the calls of a flow. An unreadable call does not hide the others.
func (j *Journal) read(flowName string) (list []CallRecord, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	known := map[string]*purposeCalls{}
	defer func() { j.known = known }()
	purposes, err := entriesOf(j.dir)
	problems := []error{err}
	for _, folder := range purposes {
		p := j.known[folder.Name()]
		if p == nil {
			purpose, _ := documents.ParseKeyName(folder.Name())
			p = &purposeCalls{flow: flowOfPurpose(purpose)}
		}
		known[folder.Name()] = p
		if p.flow == flowName {
			problems = append(problems, p.refresh(filepath.Join(j.dir, folder.Name()), folder))
			list = append(list, p.calls...)
		}
	}
	return list, errors.Join(problems...)
}

// settlesAfter is longer than the resolution of any file system's timestamps.
const settlesAfter = 2 * time.Second

// refresh reads the calls again, unless they have ended and there is no new one.
func (p *purposeCalls) refresh(dir string, folder fs.DirEntry) error {
	info, err := folder.Info()
	switch {
	case errors.Is(err, fs.ErrNotExist): // a person removed it
		*p = purposeCalls{flow: p.flow}
		return nil
	case err != nil:
		return err
	case p.settled && p.changed.Equal(info.ModTime()):
		return nil
	}
	entries, err := entriesOf(dir)
	problems := []error{err}
	ended := map[string]CallRecord{}
	p.calls, p.changed, p.settled = nil, info.ModTime(), err == nil && time.Since(info.ModTime()) > settlesAfter
	for _, entry := range entries {
		if _, err := strconv.Atoi(entry.Name()); err != nil {
			continue // the folder is not that of a call
		}
		e, final := p.ended[entry.Name()]
		if !final {
			if e, err = readCall(filepath.Join(dir, entry.Name())); err != nil {
				problems, p.settled = append(problems, err), false
				continue
			}
		}
		if e.Call != nil || e.Checked {
			ended[entry.Name()] = e
		} else {
			p.settled = false
		}
		p.calls = append(p.calls, e)
	}
	p.ended = ended
	return errors.Join(problems...)
}

// entriesOf lists a directory. A missing directory is empty.
func entriesOf(dir string) ([]fs.DirEntry, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return entries, err
}

func readCall(dir string) (e CallRecord, err error) {
	purpose, _ := documents.ParseKeyName(filepath.Base(filepath.Dir(dir)))
	e.Dir = dir
	e.Work, e.Phase = workIn(purpose)
	id, err := os.ReadFile(filepath.Join(dir, itemFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return e, err
	}
	e.Item = strings.TrimSpace(string(id))
	if e.Began, err = modTime(dir, workspaceFile); err != nil {
		return e, err
	}
	if e.Ended, err = modTime(dir, outputFile); err != nil {
		return e, err
	}
	if e.Ended.IsZero() {
		e.Ended = e.Began
	}
	if e.IsCheck() {
		return e, e.readCheck()
	}
	if err := e.readAsked(); err != nil {
		return e, err
	}
	rec, err := trace{dir: dir}.record()
	if err != nil {
		return e, fmt.Errorf("read the record of a call: %w", err)
	}
	e.Cut = rec == nil || rec.Error == errCutShort.Error()
	if rec != nil {
		e.Call = &PastCall{Call: rec.Call, Flow: flowOfPurpose(purpose), Unit: rec.Unit, Run: rec.Run}
	}
	return e, nil
}

// readCheck adds when an ended check began and ended. Until then the record has the time at which the check began
// to wait for its slot.
func (e *CallRecord) readCheck() error {
	rec, err := trace{dir: e.Dir}.checked()
	if err != nil || rec == nil || e.Began.IsZero() {
		return err
	}
	end, err := modTime(e.Dir, checkFile)
	if began := end.Add(-rec.Took); err == nil && began.After(e.Began) {
		e.Asked, e.Began, e.Ended = e.Began, began, end
	}
	e.Checked = err == nil && !end.IsZero()
	return err
}

// readAsked adds since when a call waited for its slot. Calls of earlier versions have no record of it.
func (e *CallRecord) readAsked() error {
	text, err := os.ReadFile(filepath.Join(e.Dir, askedFile))
	if errors.Is(err, fs.ErrNotExist) || e.Began.IsZero() { // begin writes the file before the one that Began is read from
		return nil
	}
	if err == nil {
		e.Asked, err = time.Parse(time.RFC3339Nano, string(text))
	}
	return err
}

// modTime returns when a file in a folder last changed, or the zero time if the file is missing.
func modTime(dir, name string) (time.Time, error) {
	info, err := os.Stat(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}

// Said returns the output of a call for people and the time when it last grew. The path is empty
// if there is no output yet. For a call that ended without output it is what the program wrote to
// its standard error, such as why it could not start.
func (e CallRecord) Said() (path string, at time.Time, err error) {
	path, at, err = e.said()
	if err != nil || e.Call == nil || path == "" || !isEmpty(path) {
		return path, at, err
	}
	if stderr := filepath.Join(e.Dir, logFile); !isEmpty(stderr) {
		path = stderr
	}
	return path, at, nil
}

// isEmpty reports whether a file is empty or missing.
func isEmpty(path string) bool {
	info, err := os.Stat(path)
	return err != nil || info.Size() == 0
}

func (e CallRecord) said() (path string, at time.Time, err error) {
	for _, name := range []string{livelogFile, outputFile} {
		if name == outputFile && !e.IsCheck() {
			continue // the output of an agent is a protocol
		}
		if at, err = modTime(e.Dir, name); err != nil || !at.IsZero() {
			return filepath.Join(e.Dir, name), at, err
		}
	}
	return "", time.Time{}, nil
}

// CallsOf returns the calls of agents for an item, in the order of the entries. People count them
// from 1.
func CallsOf(entries []CallRecord, it *lockkeeper.Item) (calls []CallRecord) {
	for _, e := range entries {
		if !e.IsCheck() && (e.Item == it.ID || e.Item == "" && e.Work == it.Workflow) {
			calls = append(calls, e)
		}
	}
	return calls
}

// Files returns the files of a call of an agent.
func (e CallRecord) Files() agent.Files { return trace{dir: e.Dir}.files() }

// Answer returns the answer in the output of a call: JSON if the call asked for it, otherwise text.
// It returns "" if the output has no answer, for example because the call has not ended.
func (e CallRecord) Answer(a agent.Adapter) (string, error) {
	schema, err := os.ReadFile(e.Files().Schema())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	res, _, _ := agent.Completed(a, e.Files(), schema) // ignores the error, because the record has the failure
	if len(res.Structured) == 0 {
		return res.Text, nil
	}
	var b bytes.Buffer
	err = json.Indent(&b, res.Structured, "", "  ")
	return b.String(), err
}

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

// FlowOf returns the flow of an item, or "" if the item belongs to no flow.
func FlowOf(it *lockkeeper.Item) string {
	if name, ok := strings.CutPrefix(it.Root, rootPrefix); ok {
		return name
	}
	return ""
}

// LastStep returns the last call or check of an item that has output for people, and the file of the output. It
// returns fs.ErrNotExist if there is none.
func (j *Journal) LastStep(it *lockkeeper.Item) (e CallRecord, path string, err error) {
	all, err := j.All(FlowOf(it))
	for _, e := range slices.Backward(all) {
		if e.Item != it.ID {
			continue
		}
		path, _, unread := e.Said()
		if unread != nil || path != "" {
			return e, path, unread
		}
	}
	if err == nil {
		err = &fs.PathError{Op: "open", Path: j.dir, Err: fs.ErrNotExist}
	}
	return CallRecord{}, "", err
}

package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"lockkeeper/durable"
	"lockkeeper/internal/agent"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/documents"
)

// WorkspaceFile, in the folder of a call, has the home of the call's workspace. It is empty if another machine has
// the workspace.
const WorkspaceFile = "workspace"

// Files in the folder of a call.
const (
	callFile      = "call.json"  // the record of the call, once the call has ended
	checkFile     = "check.json" // the record of a check, once it has ended
	itemFile      = "item"       // the id of the call's item
	workspaceFile = WorkspaceFile
	askedFile     = "asked" // since when the call waited for its slot
	outputFile    = "output"
	logFile       = "stderr"
	livelogFile   = "log"
)

// A record describes a call that has ended.
type record struct {
	flow.Call
	Unit string      `json:"unit"`
	Run  string      `json:"run"`
	Cost agent.Spent `json:"cost"`
	Used bool        `json:"used"` // the result is stored or discarded

	Shared string `json:"shared,omitempty"` // the id of the call, if another machine carried it out

	// Handling is what the item of the call took outside of its slots, without the waits for them. The
	// first call of an item has it, once the item has ended.
	Handling time.Duration `json:"handling,omitempty"`
}

// A checkRecord describes a check that has ended.
type checkRecord struct {
	Took time.Duration `json:"took"` // the time of its command
}

// A ledger stores the calls of agents and counts their cost. Each purpose has a folder, with
// a numbered folder for each call.
type ledger struct {
	dir string
	run string

	ended *records

	mu     sync.Mutex
	budget *agent.Budget
	freed  chan struct{} // closed when a call returns its reservation
}

// records has the records that this process has read, by the folder of the call.
type records struct {
	mu     sync.Mutex
	of     map[string]*record
	checks map[string]*checkRecord
}

func newRecords() *records {
	return &records{of: map[string]*record{}, checks: map[string]*checkRecord{}}
}

// openLedger opens the ledger with the cost of earlier calls of the run.
func openLedger(dir, run string, b Budget) (*ledger, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return (&ledger{dir: dir, ended: newRecords()}).of(run, b)
}

// of returns a ledger for a run in the same folder, with the cost of earlier calls of the run.
func (l *ledger) of(run string, b Budget) (*ledger, error) {
	all, err := l.all()
	if err != nil {
		return nil, err
	}
	var spent agent.Spent
	for _, r := range all {
		if r.Run == run {
			spent = spent.With(r.Cost)
		}
	}
	next := &ledger{dir: l.dir, run: run, ended: l.ended, freed: make(chan struct{})}
	next.budget, err = agent.NewBudget(b.USD, b.Tokens, spent)
	return next, err
}

// all lists the records of ended calls. It reads each record once, so Used may be out of date.
func (l *ledger) all() (list []*record, err error) {
	l.ended.mu.Lock()
	defer l.ended.mu.Unlock()
	traces, err := l.traces()
	if err != nil {
		return nil, err
	}
	for _, t := range traces {
		r, known := l.ended.of[t.dir]
		if !known {
			if r, err = t.record(); err != nil {
				return nil, fmt.Errorf("read the record of a call: %w", err)
			}
			if r == nil { // the call runs, or its run crashed
				continue
			}
			l.ended.of[t.dir] = r
		}
		list = append(list, r)
	}
	return list, nil
}

// timings lists the times of ended calls, without those that failed, and of checks.
func (l *ledger) timings() (list []timing, err error) {
	l.ended.mu.Lock()
	defer l.ended.mu.Unlock()
	traces, err := l.traces()
	if err != nil {
		return nil, err
	}
	for _, t := range traces {
		purpose, _ := documents.ParseKeyName(filepath.Base(filepath.Dir(t.dir)))
		at := timing{flow: flowOfPurpose(purpose)}
		at.work, at.phase = workIn(purpose)
		if at.check = flow.IsCheck(at.phase); at.check {
			c, known := l.ended.checks[t.dir]
			if !known {
				if c, err = t.checked(); err != nil {
					return nil, fmt.Errorf("read the record of a check: %w", err)
				}
				if c == nil { // the check runs, or its run crashed, or an earlier version ran it
					continue
				}
				l.ended.checks[t.dir] = c
			}
			at.took = c.Took
		} else {
			r := l.ended.of[t.dir]
			if r == nil || r.Error != "" {
				continue
			}
			at.phase, at.took, at.handling = r.Phase, r.Took, r.Handling
		}
		list = append(list, at)
	}
	return list, nil
}

// traces lists the folders of all calls.
func (l *ledger) traces() (list []trace, err error) {
	purposes, err := entriesOf(l.dir)
	for _, purpose := range purposes {
		calls, unread := entriesOf(filepath.Join(l.dir, purpose.Name()))
		err = errors.Join(err, unread)
		for _, call := range calls {
			if _, bad := strconv.Atoi(call.Name()); bad == nil {
				list = append(list, trace{dir: filepath.Join(l.dir, purpose.Name(), call.Name())})
			}
		}
	}
	return list, err
}

// isUsed reports whether the record of a call, as it was read first, says that its result is used.
func (l *ledger) isUsed(t trace) bool {
	l.ended.mu.Lock()
	defer l.ended.mu.Unlock()
	r := l.ended.of[t.dir]
	return r != nil && r.Used
}

// usedCalls returns the ids of calls that other machines carried out and whose results are stored.
func (l *ledger) usedCalls() (map[string]bool, error) {
	all, err := l.all()
	used := map[string]bool{}
	for _, r := range all {
		if r.Used && r.Shared != "" {
			used[r.Shared] = true
		}
	}
	return used, err
}

func (l *ledger) folder(purpose string) string {
	return filepath.Join(l.dir, documents.KeyName(purpose))
}

// last returns the number of the last call for a purpose, or 0 if there was no call.
func (l *ledger) last(purpose string) (int, error) {
	entries, err := os.ReadDir(l.folder(purpose))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	last := 0
	for _, e := range entries {
		if n, bad := strconv.Atoi(e.Name()); bad == nil {
			last = max(last, n)
		}
	}
	return last, err
}

// A trace is the folder of one call.
type trace struct {
	dir string
}

func (l *ledger) trace(purpose string, n int) trace {
	return trace{dir: filepath.Join(l.folder(purpose), strconv.Itoa(n))}
}

func (t trace) files() agent.Files {
	return agent.Files{Output: filepath.Join(t.dir, outputFile), Log: filepath.Join(t.dir, logFile)}
}

// record reads the record of the call. It returns nil if the call has no record.
func (t trace) record() (*record, error) {
	r, err := durable.ReadJSON[record](filepath.Join(t.dir, callFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return &r, err
}

// checked reads the record of the check. It returns nil if the check has no record.
func (t trace) checked() (*checkRecord, error) {
	c, err := durable.ReadJSON[checkRecord](filepath.Join(t.dir, checkFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return &c, err
}

// write replaces the record of the call atomically. It does not sync, because the output of the agent is
// not synced either, and a stored document takes precedence.
func (t trace) write(r *record) error { return t.replace(callFile, r) }

func (t trace) writeCheck(c checkRecord) error { return t.replace(checkFile, c) }

func (t trace) replace(file string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	draft := filepath.Join(t.dir, file+".new")
	if err := os.WriteFile(draft, text, 0o600); err != nil {
		return err
	}
	return os.Rename(draft, filepath.Join(t.dir, file))
}

// keep stores the prompt or the answer of a call for which no program ran.
func (trace) keep(file, text string) error { return os.WriteFile(file, []byte(text), 0o600) }

// workspace returns the home of the call's workspace, or "" if the call had no workspace.
func (t trace) workspace() (string, error) {
	text, err := os.ReadFile(filepath.Join(t.dir, workspaceFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(text), err
}

// begin creates the folder of the next call for a purpose and an item. asked is since when the call
// waited for its slot; zero: it did not wait.
func (l *ledger) begin(purpose, workspace, item string, asked time.Time) (trace, error) {
	last, err := l.last(purpose)
	if err != nil {
		return trace{}, err
	}
	t := l.trace(purpose, last+1)
	if err := os.MkdirAll(t.dir, 0o700); err != nil {
		return trace{}, err
	}
	err = os.WriteFile(filepath.Join(t.dir, itemFile), []byte(item), 0o600)
	if !asked.IsZero() {
		err = errors.Join(err, os.WriteFile(filepath.Join(t.dir, askedFile), []byte(asked.UTC().Format(time.RFC3339Nano)), 0o600))
	}
	return t, errors.Join(err, os.WriteFile(filepath.Join(t.dir, workspaceFile), []byte(workspace), 0o600))
}

func (l *ledger) start() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.budget.Start()
}

// reserve reserves the share of one call, if calls share the budget, until release. It returns 0
// if there is no limit. While too little is free, it waits for other calls to end.
func (l *ledger) reserve(ctx context.Context, calls int) (usd float64, err error) {
	for ok := false; ; {
		l.mu.Lock()
		if err = l.budget.Start(); err == nil {
			usd, ok = l.budget.Reserve(calls)
		}
		freed := l.freed
		l.mu.Unlock()
		if err != nil || ok {
			return usd, err
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// release ends a reservation after the call is counted.
func (l *ledger) release(usd float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.budget.Return(usd)
	close(l.freed)
	l.freed = make(chan struct{})
}

func (l *ledger) spent() agent.Spent {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.budget.Spent()
}

// count adds a call to the cost of the run, and returns its cost and a warning.
func (l *ledger) count(res agent.Result, failure error) (agent.Spent, string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return agent.CostOf(res, failure), l.budget.Add(res, failure)
}

// A livelog appends an agent's events to a file that people can follow, with local times.
type livelog struct {
	file *os.File
	err  error
}

func (t trace) livelog() *livelog {
	f, err := os.OpenFile(filepath.Join(t.dir, livelogFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	return &livelog{file: f, err: err}
}

func (l *livelog) tell(e agent.Event) {
	if l.err != nil {
		return
	}
	text := strings.TrimSpace(strings.Join([]string{e.Tool, e.Text}, " "))
	_, l.err = fmt.Fprintf(l.file, "%s %-11s %s\n", e.At.Local().Format("15:04:05"), e.Kind, strings.ReplaceAll(text, "\n", "\n                     "))
}

func (l *livelog) close() error {
	if l.file == nil {
		return l.err
	}
	return errors.Join(l.err, l.file.Close())
}

func answer[T any](res agent.Result) (v T, err error) {
	if err := json.Unmarshal(res.Structured, &v); err != nil {
		return v, fmt.Errorf("the agent's answer: %w", err)
	}
	return v, nil
}

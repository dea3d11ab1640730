package pipeline

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/sidecar"
)

// PastCall is a call of an agent that has ended, and for what it was made.
type PastCall struct {
	flow.Call
	Flow string `json:"flow"`
	Unit string `json:"unit"`
	Run  string `json:"run"`
}

// PastCalls reads what is kept of the calls for a flow, in a folder of calls.
func PastCalls(dir, flowName string) ([]PastCall, error) {
	l := &ledger{dir: dir}
	records, err := l.all()
	list := []PastCall{}
	for _, r := range records {
		if of := flowOf(r); of == flowName {
			list = append(list, PastCall{Call: r.Call, Flow: of, Unit: r.Unit, Run: r.Run})
		}
	}
	return list, err
}

// flowOf is the flow that a call was made for, by where its output is kept. Only in the
// flow of controllers topics are researched.
func flowOf(r record) string {
	folder := filepath.Base(filepath.Dir(filepath.Dir(filepath.FromSlash(r.Output))))
	purpose, _ := sidecar.UnitName(folder)
	name, _, _ := strings.Cut(purpose, "/")
	if r.Phase == "research" {
		return flow.Controllers().Name
	}
	return name
}

// FlowOf is the flow that an item belongs to; empty: it belongs to none.
func FlowOf(it *lockkeeper.Item) string {
	name, ok := strings.CutPrefix(it.Root, rootPrefix)
	if !ok {
		return ""
	}
	return name
}

// LastLog opens what the agent that works, or last worked, for an item of a flow does;
// fs.ErrNotExist: none has been asked. Dir is the folder of calls.
func LastLog(dir string, it *lockkeeper.Item) (*os.File, error) {
	d, err := workOf(it)
	if err != nil {
		return nil, err
	}
	logs, err := tracesWith(dir, livelogFile)
	if err != nil {
		return nil, err
	}
	last, at := "", time.Time{}
	for _, log := range logs {
		purpose, ok := sidecar.UnitName(filepath.Base(filepath.Dir(filepath.Dir(log))))
		if !ok || !d.isFor(purpose, FlowOf(it)) {
			continue
		}
		info, err := os.Stat(log)
		if err != nil {
			return nil, err
		}
		if info.ModTime().After(at) {
			last, at = log, info.ModTime()
		}
	}
	if last == "" {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: fs.ErrNotExist}
	}
	return os.Open(last)
}

// isFor reports whether a purpose of calls is that of the work: of a batch all its phases
// are, of anything else its own.
func (d due) isFor(purpose, flowName string) bool {
	rest, ok := strings.CutPrefix(purpose, flowName+"/"+d.workflow()+"/")
	return ok && !strings.Contains(rest, "/") && (d.kind != string(flow.Controller) || rest == d.phase)
}

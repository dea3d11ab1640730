package run

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow"
)

// PastCall is a call of an agent that has ended, and for what it was made.
type PastCall struct {
	flow.Call
	Flow string `json:"flow"`
	Unit string `json:"unit"`
	Run  string `json:"run"`
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

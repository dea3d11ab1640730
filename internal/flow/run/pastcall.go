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

package run

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/sidecar"
)

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
	purpose, _ := sidecar.UnitName(filepath.Base(filepath.Dir(dir)))
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

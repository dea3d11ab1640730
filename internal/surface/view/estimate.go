package view

import (
	"fmt"
	"strings"
	"time"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/run"
)

// An Estimate is the work and cost that an approval starts, from recorded calls and checks.
type Estimate struct {
	Batches int     `json:"batches"`
	Known   bool    `json:"known"`        // false: no batch of this flow has recorded work
	Took    Seconds `json:"took_seconds"` // of agents and tests, one after the other
	USD     float64 `json:"cost_usd"`     // 0: the agent reports no cost
	From    int     `json:"from_batches"` // the batches with records
}

func (e Estimate) String() string {
	what := batches(e.Batches)
	if !e.Known {
		return what + "; time and cost unknown, because no batch has run yet"
	}
	text := fmt.Sprintf("%s, about %s of agents and tests", what, e.Took.Duration().Round(time.Second))
	if e.USD > 0 {
		text += fmt.Sprintf(", about $%.2f", e.USD)
	} else {
		text += ", cost unknown"
	}
	return text + fmt.Sprintf(" (mean of %s)", batches(e.From)+" on record")
}

func batches(n int) string {
	if n == 1 {
		return "1 batch"
	}
	return fmt.Sprintf("%d batches", n)
}

// perBatch is the mean of what the recorded batches of a flow took and cost.
type perBatch struct {
	from int
	took time.Duration
	usd  float64
}

// meanBatch returns what a batch takes and costs.
func meanBatch(f flow.Flow, entries []run.CallRecord) (m perBatch) {
	of := map[string]bool{}
	for _, phase := range f.Phases {
		of[phase.Name], of[phase.Prompt] = phase.Unit == flow.BatchUnit, phase.Unit == flow.BatchUnit
	}
	seen := map[string]bool{}
	for _, e := range entries {
		if !strings.Contains(e.Work, "/") || !of[e.Phase] && !e.IsCheck() || e.Began.IsZero() || e.Ended.Before(e.Began) {
			continue
		}
		seen[e.Work] = true
		m.took += e.Ended.Sub(e.Began)
		if e.Call != nil {
			m.usd += e.Call.USD
		}
	}
	if m.from = len(seen); m.from > 0 {
		m.took /= time.Duration(m.from)
		m.usd /= float64(m.from)
	}
	return m
}

// of returns the estimate for a number of batches.
func (m perBatch) of(batches int) Estimate {
	return Estimate{Batches: batches, Known: m.from > 0, Took: seconds(time.Duration(batches) * m.took), USD: float64(batches) * m.usd, From: m.from}
}

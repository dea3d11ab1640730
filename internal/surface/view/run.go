package view

import (
	"slices"
	"time"

	"lockkeeper/internal/flow/report"
)

// Run is what a flow did.
type Run struct {
	Moment
	Line     RunLine        `json:"line"`
	Report   *report.Report `json:"report"`
	Cost     Cost           `json:"cost"`
	Refused  []RefusedWrite `json:"refused"`  // the newest first
	Landings []Landing      `json:"landings"` // the newest first
	More     bool           `json:"more"`     // there are earlier landings
	Problems []string       `json:"problems"` // what could not be found out
}

// With is the run with more problems, which others know of. The one that it is made from
// may be shown to somebody else, too, and stays as it is.
func (r Run) With(problems []string) *Run {
	r.Problems = slices.Concat(r.Problems, problems)
	return &r
}

// RefusedWrite is a write that the gate, or a grant, did not let through.
type RefusedWrite struct {
	At     time.Time `json:"at"`
	Path   string    `json:"path"`
	Name   string    `json:"name"` // of the work, or the holder
	Reason string    `json:"reason"`
	Rescue string    `json:"rescue,omitempty"` // where it is kept
	Kept   bool      `json:"kept"`             // it still is
}

// Landing is a set of changes that reached the tree.
type Landing struct {
	Seq      uint64    `json:"landing"`
	At       time.Time `json:"at"`
	Holder   string    `json:"holder"`
	Name     string    `json:"name"` // of the work, or the holder
	Unit     string    `json:"unit,omitempty"`
	Batch    string    `json:"batch,omitempty"`
	State    string    `json:"state"` // decided, committed or undone
	Paths    []string  `json:"paths"`
	Commit   string    `json:"commit,omitempty"` // of git
	Undoes   uint64    `json:"undoes,omitempty"`
	UndoneBy uint64    `json:"undone_by,omitempty"`
	Undo     Act       `json:"undo"` // refused where later landings stand on it, or what it displaced is gone
}

// LandingsQuery selects a page of landings.
type LandingsQuery struct {
	Before uint64 // of the page before: its Next; 0: the newest
	Limit  int    // 0: 100
	Path   string
}

// Landings is a page of landings.
type Landings struct {
	Moment
	Landings []Landing `json:"landings"`       // the newest first
	Next     uint64    `json:"next,omitempty"` // 0: there are no more
}

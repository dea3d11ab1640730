package view

import (
	"time"

	"lockkeeper/internal/flow/progress"
)

// Board is where every unit is: phases across, units down.
type Board struct {
	Moment
	Flow     string         `json:"flow"`
	Run      RunLine        `json:"run"`
	Phases   []BoardPhase   `json:"phases"`
	Units    []BoardUnit    `json:"units"`
	Statuses map[string]int `json:"statuses"` // how many units have which
	Problems []string       `json:"problems"` // what could not be found out
}

// BoardPhase is a column.
type BoardPhase struct {
	Name     string `json:"name"`
	Executor string `json:"executor"` // built-in, agent, api, human or command
	Units    int    `json:"units"`    // that are in it
}

// BoardUnit is a row.
type BoardUnit struct {
	Name    string                `json:"name"`
	Status  string                `json:"status"`
	Pending string                `json:"pending,omitempty"`
	Phase   string                `json:"phase,omitempty"` // the column it is in; empty: it is complete
	Cells   []Mark                `json:"cells"`           // one for each phase
	Since   time.Time             `json:"since,omitzero"`
	Item    string                `json:"item,omitempty"`
	Note    string                `json:"note,omitempty"`
	Error   string                `json:"error,omitempty"`
	Gates   map[progress.Kind]int `json:"gates"`
	First   *progress.Ref         `json:"first,omitempty"` // of what waits for a person
	Batches []BoardBatch          `json:"batches"`

	Malformed []progress.Malformed `json:"malformed,omitempty"`
	Unread    string               `json:"unread,omitempty"` // why its documents cannot be read
}

// Mark is what a cell says.
type Mark string

// The marks.
const (
	MarkDone    Mark = "done"
	MarkActive  Mark = "active"
	MarkQueued  Mark = "queued"
	MarkPerson  Mark = "person" // somebody is needed
	MarkFailed  Mark = "failed"
	MarkWaiting Mark = "waiting" // its turn has come, and nobody has queued it yet
	MarkToCome  Mark = "to_come"
)

// BoardBatch is a batch, or a screen, of a row.
type BoardBatch struct {
	ID      string    `json:"id"`
	Title   string    `json:"title,omitempty"`
	Status  string    `json:"status"`
	Pending string    `json:"pending,omitempty"`
	Phase   string    `json:"phase,omitempty"`
	Mark    Mark      `json:"mark"`
	Since   time.Time `json:"since,omitzero"`
	Item    string    `json:"item,omitempty"`
	Note    string    `json:"note,omitempty"`
	Error   string    `json:"error,omitempty"`
	Blocked []string  `json:"blocked,omitempty"` // ids of batches that come first
	Landed  time.Time `json:"landed,omitzero"`
	Undone  bool      `json:"undone,omitempty"`
}

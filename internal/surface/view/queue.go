package view

import (
	"time"

	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/run"
)

// Queue is all that waits for a person, in the order in which it is best answered.
type Queue struct {
	Moment
	Flow      string        `json:"flow"`
	Conductor string        `json:"conductor"` // who conducts the flow now; empty: nobody
	Gates     []Waiting     `json:"gates"`
	Clusters  []Cluster     `json:"clusters"` // of equal items: one answer for all of them
	Progress  Progress      `json:"progress"`
	Failed    []run.Failure `json:"failed"`
	Unread    []UnreadUnit  `json:"unread"`
	Problems  []string      `json:"problems"` // what could not be found out
}

// Waiting is one thing that waits for a person.
type Waiting struct {
	progress.Decision
	Impact string `json:"impact,omitempty"` // of an item
	Effort string `json:"effort,omitempty"`
	Prior  string `json:"prior,omitempty"` // of an item: what was decided of it, or of one like it, before
	Asked  bool   `json:"asked,omitempty"` // of a topic: the next run asks the Messages API
}

// Cluster is items of several units with the same words.
type Cluster struct {
	Title string         `json:"title"`
	Refs  []progress.Ref `json:"refs"`
}

// Progress is how much is decided, and how long the rest may take.
type Progress struct {
	Answered int       `json:"answered"` // of all that ever was to be answered in this flow
	Open     int       `json:"open"`
	Pace     Seconds   `json:"pace_seconds"` // between two answers of late; 0: not known
	Left     Seconds   `json:"left_seconds"` // at that pace; 0: not known
	Last     time.Time `json:"last,omitzero"`
}

// UnreadUnit is a unit whose documents cannot be read.
type UnreadUnit struct {
	Unit   string `json:"unit"`
	Reason string `json:"reason"`
}

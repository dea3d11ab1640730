package view

import (
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/rescue"
)

// GateDetail is all that is known of what is to be decided, or was. Of Topic, Item, Plan,
// Review and Gap it has the one that its kind says.
type GateDetail struct {
	Moment
	Flow    string `json:"flow"`
	Waiting        // of what does not wait: its reference and title alone
	Waits   bool   `json:"waits"`   // for somebody's answer
	Status  string `json:"status"`  // of its unit
	Purpose string `json:"purpose"` // of its unit

	Topic  *progress.Topic `json:"topic,omitempty"`
	Item   *ItemDetail     `json:"item,omitempty"`
	Plan   *PlanDetail     `json:"plan,omitempty"`
	Review *BatchDetail    `json:"review,omitempty"`
	Gap    *GapDetail      `json:"gap,omitempty"`

	Malformed []progress.Malformed `json:"malformed,omitempty"` // documents of the unit
}

// ItemDetail is an improvement, and the batch that makes it.
type ItemDetail struct {
	progress.Item
	Batch  string `json:"batch,omitempty"`
	Status string `json:"status,omitempty"` // of the batch
}

// PlanDetail is a unit as a whole: what was decided, and its batches.
type PlanDetail struct {
	Items    []progress.Item        `json:"items"`
	Gone     []progress.DroppedItem `json:"gone"` // what the audit dropped, and a person may want back
	Batches  []BatchDetail          `json:"batches"`
	Warnings []string               `json:"warnings"`
	Approved *flow.Approval         `json:"approved,omitempty"`
}

// BatchDetail is a batch with what became of it.
type BatchDetail struct {
	Unit    string `json:"unit"`
	Version string `json:"version,omitempty"` // of its review, while that waits
	progress.Batch
	Does []progress.Item `json:"does"` // its items
	Gaps []progress.Gap  `json:"gaps"`
	Diff *Diff           `json:"diff,omitempty"` // what it changes; nil where that was not asked for
}

// GapDetail is a refused change, and what it would have changed.
type GapDetail struct {
	progress.Gap
	Batch string        `json:"batch"`
	Title string        `json:"title"` // of the batch
	Kept  *rescue.Entry `json:"kept,omitempty"`
	Diff  *Diff         `json:"diff,omitempty"`
}

// Diff is what changes, file by file.
type Diff struct {
	Files   []FileDiff `json:"files"`
	Added   int        `json:"added"` // lines, in all
	Removed int        `json:"removed"`
}

// FileDiff is what changes in one file.
type FileDiff struct {
	Path    string `json:"path"`
	Change  string `json:"change"`         // added, changed or deleted
	Text    string `json:"text"`           // unified
	Note    string `json:"note,omitempty"` // instead of a text: binary, too large, not kept any more
	Added   int    `json:"added"`          // lines
	Removed int    `json:"removed"`
}

package view

import (
	"time"

	"lockkeeper/internal/flow/progress"
	"lockkeeper/rescue"
)

// Rescue is everything that could not land, and is kept.
type Rescue struct {
	Moment
	Entries []Kept         `json:"entries"` // the newest first
	Kinds   map[string]int `json:"kinds"`
	Bytes   int64          `json:"bytes"`
	KeptFor Seconds        `json:"kept_for_seconds"`  // how long entries are kept
	Problem string         `json:"problem,omitempty"` // why not all can be shown
}

// Kept is something that is kept.
type Kept struct {
	rescue.Entry
	Mode  string        `json:"mode"`          // as people write permissions; empty: those that are there
	What  string        `json:"what"`          // in a word or two
	Ref   *progress.Ref `json:"ref,omitempty"` // of a flow: the gap that it belongs to
	Until time.Time     `json:"until"`         // it is kept at least so long
	Acts  []Act         `json:"acts"`          // land, drop
}

// Rescued is one thing that is kept, with what it would change where it was to go.
type Rescued struct {
	Moment
	Kept
	Diff    *Diff  `json:"diff,omitempty"`
	Note    string `json:"note,omitempty"` // instead of a diff
	Content string `json:"content"`        // where the content is on disk
	Next    string `json:"next"`           // what can be done with it, besides dropping it
}

package view

import (
	"time"

	"lockkeeper"
)

// AuditQuery selects a page of the record. Fields left empty select nothing out.
type AuditQuery struct {
	Since, Until time.Time
	Who          string // a holder, an actor, an item, or what an item is called
	Path         string
	Kinds        []string // of events
	Text         string   // that is found in the line
	Before       uint64   // of the page before: its Next; 0: the newest
	Limit        int      // 0: 100
}

// Audit is a page of the record.
type Audit struct {
	Moment
	Lines     []Line   `json:"lines"`          // the newest first
	Next      uint64   `json:"next,omitempty"` // to be given as Before for those behind; 0: there are none
	Oldest    uint64   `json:"oldest"`         // that the log keeps
	Kinds     []string `json:"kinds"`          // that there are
	Forgotten bool     `json:"forgotten"`      // the log does not reach back to Since
}

// Line is an event, and what it says in words.
type Line struct {
	lockkeeper.Event
	Name string `json:"name"` // whom it is about: work, or a holder
	Item string `json:"item,omitempty"`
	What string `json:"what"` // what happened, in words
	Text string `json:"text"` // all of it in a line, without the time
}

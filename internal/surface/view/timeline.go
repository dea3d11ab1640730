package view

import (
	"time"
)

// Timeline is who worked when, and who waited for whom.
type Timeline struct {
	Moment
	From      time.Time   `json:"from"` // that is shown
	To        time.Time   `json:"to"`
	Began     time.Time   `json:"began,omitzero"` // of the run as a whole, or of what is shown that is earlier
	Over      time.Time   `json:"over,omitzero"`
	Lanes     []Lane      `json:"lanes"`
	Waits     []LockWait  `json:"waits"`     // the longest first
	Busy      []BusyPoint `json:"busy"`      // how many agents worked at once
	Forgotten bool        `json:"forgotten"` // the log does not reach back to From
	Problems  []string    `json:"problems"`  // what could not be found out
}

// Lane is the life of one piece of work.
type Lane struct {
	Work      string    `json:"work"`
	Unit      string    `json:"unit,omitempty"`
	Stretches []Stretch `json:"stretches"` // by their beginning
}

// Stretch is what was done for a time.
type Stretch struct {
	What  Doing     `json:"what"`
	Began time.Time `json:"began"`
	Over  time.Time `json:"over"`
	Open  bool      `json:"open,omitempty"` // it goes on
	Item  string    `json:"item,omitempty"`
	Phase string    `json:"phase,omitempty"`
	Text  string    `json:"text,omitempty"` // who is waited for, which landing, …
	USD   float64   `json:"usd,omitempty"`
}

// Doing is what is done in a stretch of time.
type Doing string

// What can be done.
const (
	DoingQueue Doing = "queued"  // it waits for its turn, or a slot
	DoingWait  Doing = "blocked" // it waits for locks
	DoingHold  Doing = "holds"   // the locks are held, and nothing runs
	DoingAgent Doing = "agent"
	DoingCheck Doing = "check" // tests or CI
	DoingLand  Doing = "landed"
)

// LockWait is who waited for whom, and for how long.
type LockWait struct {
	Work   string    `json:"work"`
	Item   string    `json:"item"`
	Behind []string  `json:"behind"` // whom, in the order of their turns
	Paths  []string  `json:"paths"`
	Began  time.Time `json:"began"`
	Took   Seconds   `json:"took_seconds"`
	Open   bool      `json:"open,omitempty"` // it still waits
}

// BusyPoint is how many agents were at work from then on.
type BusyPoint struct {
	At     time.Time `json:"at"`
	Agents int       `json:"agents"`
}

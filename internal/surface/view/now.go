package view

import (
	"time"

	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/run"
)

// Now is what somebody wants to know first who comes back.
type Now struct {
	Moment
	Run         RunLine       `json:"run"`
	Needs       Needs         `json:"needs_you"`
	Stuck       []Stuck       `json:"stuck"` // the longest first
	Failed      []run.Failure `json:"failed"`
	Changes     Changes       `json:"changes"`
	Cost        Cost          `json:"cost"`
	Slots       []Slots       `json:"slots"` // agents, tests and calls of the API
	Queued      int           `json:"queued"`
	Blocked     int           `json:"blocked"` // of these
	Enforcement Enforcement   `json:"enforcement"`
	Problems    []string      `json:"problems"` // what could not be found out
}

// RunLine is the run in a line.
type RunLine struct {
	State     RunState  `json:"state"`
	ID        string    `json:"id,omitempty"`
	Flow      string    `json:"flow,omitempty"`
	Plan      string    `json:"plan,omitempty"` // of the tasks flow: the file
	Began     time.Time `json:"began,omitzero"`
	Ended     time.Time `json:"ended,omitzero"`
	Conductor string    `json:"conductor,omitempty"` // who conducts it now
	Units     int       `json:"units"`
	Complete  int       `json:"complete"`
	Failed    int       `json:"failed"`
	Next      string    `json:"next,omitempty"` // the command that goes on
}

// RunState is what a run does.
type RunState string

// The states of a run.
const (
	RunNone        RunState = "none"        // there never was one
	RunDiscovering RunState = "discovering" // somebody has just begun
	RunActive      RunState = "active"      // somebody conducts it
	RunWaiting     RunState = "waiting"     // nothing goes on before a person answers
	RunInterrupted RunState = "interrupted" // it is not finished, and nobody conducts it
	RunEnded       RunState = "ended"
)

// Needs counts what waits for a person.
type Needs struct {
	Total  int         `json:"total"`
	Kinds  []NeedsKind `json:"kinds"` // those that there are, in the order of a unit's life
	Oldest time.Time   `json:"oldest,omitzero"`
}

// NeedsKind counts what waits of one kind.
type NeedsKind struct {
	Kind  progress.Kind `json:"kind"`
	Count int           `json:"count"`
	First progress.Ref  `json:"first"` // where to begin
}

// Stuck is something that does not get on.
type Stuck struct {
	Kind    StuckKind `json:"kind"`
	Name    string    `json:"name"` // of the work, or the holder
	Item    string    `json:"item,omitempty"`
	GrantID string    `json:"grant_id,omitempty"`
	Phase   string    `json:"phase,omitempty"`
	Since   time.Time `json:"since"`
	Behind  []Blocker `json:"behind"` // of what is blocked: who is in the way
	Acts    []Act     `json:"acts"`
}

// StuckKind says what is wrong.
type StuckKind string

// What can be wrong.
const (
	StuckBlocked StuckKind = "blocked"    // by locks, for long
	StuckSilent  StuckKind = "silent"     // an agent that says nothing
	StuckLost    StuckKind = "lost"       // its worker is gone
	StuckStale   StuckKind = "stale"      // a grant whose time is past, and which a person has to free
	StuckLanding StuckKind = "unfinished" // a landing that is neither done nor rolled back, and on which no process works
	StuckNobody  StuckKind = "nobody"     // it is queued, and no worker takes such
)

// Blocker is who is in somebody's way.
type Blocker struct {
	Name    string `json:"name"` // of the work, or the holder
	Item    string `json:"item,omitempty"`
	GrantID string `json:"grant_id"`
	Path    string `json:"path"`
	Waits   bool   `json:"waits"` // it does not hold it, and asked earlier
}

// Act is something that a person can do about what they see.
type Act struct {
	Name    string `json:"name"`              // retry, cancel, undo, …
	Target  string `json:"target"`            // the item, grant, landing or entry
	Command string `json:"command"`           // what it is in a terminal
	Refused string `json:"refused,omitempty"` // why it cannot be done now
	Was     string `json:"was,omitempty"`     // the status of the item for which it is offered
	Note    bool   `json:"note,omitempty"`    // a note that comes with it is read by somebody
}

// Changes is what happened since somebody last looked.
type Changes struct {
	After     uint64    `json:"after"` // the event they saw last
	Since     time.Time `json:"since,omitzero"`
	Forgotten bool      `json:"forgotten"` // the log does not reach back to there
	Cut       bool      `json:"cut"`       // too much happened to count all of it
	Counts    []Count   `json:"counts"`    // what there is of: landed, gaps, recovered, …
	Latest    []Line    `json:"latest"`    // the newest first, of what matters later
}

// Count is how often something happened.
type Count struct {
	What  string `json:"what"` // landed, undone, gap, failed, recovered, forced, refused, escalated, decided or epoch
	Count int    `json:"count"`
}

// Slots are how many of a kind of slot are taken.
type Slots struct {
	Pool  string `json:"pool"`
	Taken int    `json:"taken"`
	Limit int    `json:"limit"`
}

// Enforcement is how agents are kept from writing around the gate.
type Enforcement struct {
	Mode    string `json:"mode"`              // as configured
	Level   string `json:"level"`             // what this machine gives
	Missing string `json:"missing,omitempty"` // why it is no more
	Ways    []Way  `json:"ways"`              // to write, and what is done about each
}

// Way is a way to write, and what is done about it.
type Way struct {
	Writer string `json:"writer"` // who writes so
	Name   string `json:"name"`
	Level  string `json:"level"` // enforced, detected or advisory
	Fact   string `json:"fact"`
	Next   string `json:"next,omitempty"` // how it gets better
	Broken bool   `json:"broken"`         // it is meant to be enforced, and is not as it should be

	OfTools bool `json:"-"` // it is one of the tools of an interactive agent
}

package view

import (
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow/run"
	"lockkeeper/sched"
)

// Item is all that is known of a piece of work.
type Item struct {
	Moment
	Why      sched.Explanation `json:"why"`   // with the item itself
	Waits    []Wait            `json:"waits"` // what it waits for, in the order of what is to be said first
	State    string            `json:"state"` // ready, blocked, escalated, running, between phases, completed or failed
	Since    time.Time         `json:"since"`
	Flow     string            `json:"flow,omitempty"` // empty: it belongs to none
	Unit     string            `json:"unit,omitempty"`
	Kind     string            `json:"kind,omitempty"`   // of a flow: controller, screen, topic or batch
	Part     string            `json:"part,omitempty"`   // the screen, topic or batch
	Worker   *Worker           `json:"worker,omitempty"` // that runs it; nil: none, or it is gone
	Lost     bool              `json:"lost,omitempty"`   // it is dispatched, and its worker is gone
	Failed   *FailedFirst      `json:"failed_first,omitempty"`
	Log      *Log              `json:"log,omitempty"`
	Batch    *BatchDetail      `json:"batch,omitempty"` // with diff, tests, CI and verification
	Calls    []run.PastCall    `json:"calls"`           // of agents for it, the oldest first
	Cost     Cost              `json:"cost"`
	Events   []Line            `json:"events"` // the newest first
	Grant    *Standing         `json:"grant,omitempty"`
	Landings []Landing         `json:"landings"`
	Acts     []Act             `json:"acts"`     // retry, cancel, undo, …
	Problems []string          `json:"problems"` // what could not be found out
}

// Wait is one thing that an item waits for.
type Wait struct {
	Kind    WaitKind  `json:"kind"`
	Text    string    `json:"text"`
	Blocker *Blocker  `json:"blocker,omitempty"`      // of a lock
	Since   time.Time `json:"since,omitzero"`         // of a lock: since when it is held
	Left    Seconds   `json:"left_seconds,omitempty"` // how much longer it is likely to be; 0: not known
	Overdue bool      `json:"overdue,omitempty"`
	Item    string    `json:"item,omitempty"` // that has to be completed first
	Slots   *Slots    `json:"slots,omitempty"`
}

// WaitKind says what is waited for.
type WaitKind string

// What can be waited for.
const (
	WaitLock  WaitKind = "lock"
	WaitSlot  WaitKind = "slot"
	WaitAfter WaitKind = "after" // another item
	WaitCopy  WaitKind = "copy"  // a node whose copy is not behind
	WaitTurn  WaitKind = "turn"
)

// FailedFirst is an item that failed, and without which another never starts.
type FailedFirst struct {
	Item   string `json:"item"`
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// Log is the end of what an agent or a command said.
type Log struct {
	Text   string    `json:"text"`
	From   int64     `json:"from"`             // where the text begins: 0, or there is more before it
	Next   int64     `json:"next"`             // where it goes on
	Size   int64     `json:"size"`             // of the whole
	Said   time.Time `json:"said"`             // when something was last said
	Silent bool      `json:"silent,omitempty"` // it runs, and has said nothing for long
	Path   string    `json:"path"`
}

// Items is a page of the queue.
type Items struct {
	Moment
	Items []ListedItem `json:"items"`          // the newest first
	Next  uint64       `json:"next,omitempty"` // to be given as After for those behind; 0: there are none
	Queue QueueCount   `json:"queue"`
}

// QueueCount counts the items of the queue.
type QueueCount struct {
	Ready     int `json:"ready"`
	Blocked   int `json:"blocked"`
	Running   int `json:"running"`
	Completed int `json:"completed"`
	Failed    int `json:"failed"`
}

// ListedItem is an item as a list shows it.
type ListedItem struct {
	*lockkeeper.Item
	State string `json:"state"` // ready, blocked, escalated, running, between phases, completed or failed
	Name  string `json:"name"`
}

// ItemsQuery selects a page of items.
type ItemsQuery struct {
	Status lockkeeper.ItemStatus // empty: any
	After  uint64                // of the page before
	Limit  int                   // 0: 100
}

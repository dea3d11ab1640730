package view

import (
	"time"

	"lockkeeper"
	"lockkeeper/lock"
)

// Locks is who holds what, who waits for whom, and who wrote last.
type Locks struct {
	Moment
	Held      []Standing   `json:"held"`
	Stale     []Standing   `json:"stale"`     // past their lease, and still held
	Waiting   []Standing   `json:"waiting"`   // first come first
	Queued    []QueuedWait `json:"queued"`    // items of the queue that locks keep waiting
	Tree      []WaitNode   `json:"tree"`      // who waits for whom, whoever waits for nobody first
	Graph     Graph        `json:"graph"`     // the same
	Writers   []Writer     `json:"writers"`   // who wrote last, of what is held or was written of late
	Resources []Resource   `json:"resources"` // named resources that are locked
	More      int          `json:"more"`      // grants that are left out
}

// Standing is one grant or waiting request with what is known of whoever has it.
type Standing struct {
	lock.RequestInfo
	Locks      []PathLock             `json:"locks"` // strongest first
	Name       string                 `json:"name"`  // of the work it is for, or the holder
	Item       string                 `json:"item,omitempty"`
	Reason     string                 `json:"reason,omitempty"`
	Life       string                 `json:"process_state,omitempty"` // alive, dead or unknown
	Conditions []lockkeeper.Condition `json:"conditions,omitempty"`    // of a stale one: what is checked before a person may free it
	Acts       []Act                  `json:"acts"`
}

// PathLock is one path that is locked, or to be locked.
type PathLock struct {
	Path string          `json:"path"`
	Mode lockkeeper.Mode `json:"mode"`
}

// QueuedWait is an item that waits for locks.
type QueuedWait struct {
	Item      string    `json:"item"`
	Name      string    `json:"name"`
	Phase     string    `json:"phase"`
	Since     time.Time `json:"since"`
	Escalated bool      `json:"escalated"`
	Behind    []Blocker `json:"behind"`
}

// WaitNode is somebody, with those who wait for them.
type WaitNode struct {
	ID     string     `json:"id"` // of the grant or item
	Name   string     `json:"name"`
	State  string     `json:"state"`          // held, stale, waiting or queued
	Path   string     `json:"path,omitempty"` // for which it waits
	Since  time.Time  `json:"since"`
	Again  bool       `json:"again,omitempty"` // it waits for several, and stands in full elsewhere
	Behind []WaitNode `json:"behind"`
}

// Graph is who waits for whom.
type Graph struct {
	Nodes []GraphNode `json:"nodes"`
	Edges []GraphEdge `json:"edges"`
}

// GraphNode is a grant, a request or an item.
type GraphNode struct {
	ID    string    `json:"id"`
	Name  string    `json:"name"`
	State string    `json:"state"` // held, stale, waiting or queued
	Item  string    `json:"item,omitempty"`
	Since time.Time `json:"since"`
}

// GraphEdge says that one waits for another.
type GraphEdge struct {
	From string `json:"from"` // who waits
	To   string `json:"to"`
	Path string `json:"path"`
}

// Writer is who changed a path last.
type Writer struct {
	Path    string    `json:"path"`
	Holder  string    `json:"holder"`
	Name    string    `json:"name"` // of the work, or the holder
	Landing uint64    `json:"landing"`
	At      time.Time `json:"at"`
	Held    string    `json:"held,omitempty"` // the grant that has it for writing now
}

// Resource is a named resource that somebody has locked.
type Resource struct {
	Resource string    `json:"resource"`
	Instance string    `json:"instance"` // who has it
	Mode     string    `json:"mode"`
	Since    time.Time `json:"since"`
	Minutes  int       `json:"age_minutes"`
	Stale    bool      `json:"stale"`
	State    string    `json:"state,omitempty"` // of a claim: working, idle (still open) or gone
	GrantID  string    `json:"grant_id"`
}

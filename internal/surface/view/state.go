package view

import (
	"sync"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
)

// State is everything at once: what the documents call to_json, and what was found to be
// missing there.
type State struct {
	Phase       string              `json:"phase"` // of the whole: idle, discovering or ready
	Controllers []Controller        `json:"controllers"`
	Workflows   map[string]Workflow `json:"workflows"` // by controller
	Locks       LockState           `json:"locks"`
	Cost        Cost                `json:"cost"`
	Flow        string              `json:"flow"`
	Problems    []string            `json:"problems"` // what could not be found out
	Moment

	spelled []*shownGrant // of the grants

	once  sync.Once // guards what follows
	text  []byte
	wrong error
}

// Controller is one unit of the flow, in the order in which they are worked on.
type Controller struct {
	Name   string `json:"name"`
	Status string `json:"status"`
}

// Workflow is where a unit is.
type Workflow struct {
	Status    string                 `json:"status"`
	Pending   string                 `json:"pending,omitempty"` // of a queued one: the phase it waits for
	Since     time.Time              `json:"since,omitzero"`
	Item      string                 `json:"item,omitempty"` // of the queue
	Note      string                 `json:"note,omitempty"` // how far it says it is
	Error     string                 `json:"error,omitempty"`
	Batches   map[string]BatchStatus `json:"batches"` // by id; before there is a plan, the screens
	Gates     map[progress.Kind]int  `json:"gates"`   // how much of which kind waits for a person
	Malformed []progress.Malformed   `json:"malformed,omitempty"`
}

// BatchStatus is where a batch, or a screen, is.
type BatchStatus struct {
	Status  string    `json:"status"`
	Pending string    `json:"pending,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	Item    string    `json:"item,omitempty"`
	Note    string    `json:"note,omitempty"`
	Error   string    `json:"error,omitempty"`
	Blocked []string  `json:"blocked,omitempty"` // ids of batches that come first
}

// LockState is who has what, and who waits.
type LockState struct {
	ActiveGrants []lockkeeper.GrantSnapshot `json:"active_grants"`
	QueueDepth   int                        `json:"queue_depth"`
	ActiveItems  []*lockkeeper.Item         `json:"active_items"`
	BlockedItems []BlockedItem              `json:"blocked_items"` // the first of them
	BlockedCount int                        `json:"blocked_count"` // all of them
	Gaps         []Gap                      `json:"gaps"`          // that nobody has answered
}

// BlockedItem is a queued item that something is in the way of.
type BlockedItem struct {
	Item     *lockkeeper.Item          `json:"item"`
	Waiting  Seconds                   `json:"waiting_seconds"` // since it was queued
	Retries  int                       `json:"retries"`
	Blockers []lockkeeper.ConflictInfo `json:"blockers"` // none: it waits for a slot, or for another item
	For      string                    `json:"for"`      // what it waits for first, in a few words
}

// Gap is a write that was refused, and is kept: of a batch, or of somebody at the gate.
type Gap struct {
	Ref    *progress.Ref `json:"ref,omitempty"` // nil: no flow knows of it
	Unit   string        `json:"unit,omitempty"`
	Batch  string        `json:"batch,omitempty"`
	Holder string        `json:"holder,omitempty"`
	flow.Gap
}

// Cost is what a flow has cost, and may still cost.
type Cost struct {
	USD          float64 `json:"usd"` // of this run
	Tokens       int64   `json:"tokens"`
	Calls        int     `json:"calls"`
	BudgetUSD    float64 `json:"budget_usd"`    // 0: no limit
	BudgetTokens int64   `json:"budget_tokens"` // 0: no limit
	RestUSD      float64 `json:"rest_usd"`      // what is still to come, by what such phases have cost so far
	TotalUSD     float64 `json:"total_usd"`     // both together
	Exhausted    bool    `json:"exhausted"`     // the budget is used up: no call starts
}

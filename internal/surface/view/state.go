package view

import (
	"context"
	"slices"
	"sync"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/rescue"
	"lockkeeper/store"
)

// State is the complete state: the to_json of the source documents, with additions.
type State struct {
	Phase       string              `json:"phase"`           // phase of the whole flow: idle, discovering, ready or error
	Error       string              `json:"error,omitempty"` // why conducting the run ended early
	Controllers []Controller        `json:"controllers"`
	Workflows   map[string]Workflow `json:"workflows"` // by controller
	Locks       LockState           `json:"locks"`
	Cost        Cost                `json:"cost"`
	Flow        string              `json:"flow"`
	Problems    []string            `json:"problems"` // what could not be read
	Moment

	spelled []*shownGrant // encoded grants

	once  sync.Once // guards the fields below
	text  []byte
	wrong error
}

// Controller is one unit of the flow.
type Controller struct {
	Name   string `json:"name"`
	Status string `json:"status"`
}

// Workflow is the state of a unit.
type Workflow struct {
	Status    string                 `json:"status"`
	Pending   string                 `json:"pending,omitempty"` // phase that a queued unit waits for
	Since     time.Time              `json:"since,omitzero"`
	Item      string                 `json:"item,omitempty"` // item of the queue
	Note      string                 `json:"note,omitempty"` // progress reported by its agent
	Error     string                 `json:"error,omitempty"`
	Batches   map[string]BatchStatus `json:"batches"` // batches by id; the screens, before there is a plan
	Open      map[progress.Kind]int  `json:"gates"`   // open decisions by kind
	Malformed []progress.Malformed   `json:"malformed,omitempty"`
}

// BatchStatus is the state of a batch or screen.
type BatchStatus struct {
	Status  string    `json:"status"`
	Pending string    `json:"pending,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	Item    string    `json:"item,omitempty"`
	Note    string    `json:"note,omitempty"`
	Error   string    `json:"error,omitempty"`
	Blocked []string  `json:"blocked,omitempty"` // ids of batches that must land first
}

// LockState is the grants and the queue.
type LockState struct {
	ActiveGrants []lockkeeper.GrantSnapshot `json:"active_grants"`
	QueueDepth   int                        `json:"queue_depth"`
	ActiveItems  []*lockkeeper.Item         `json:"active_items"`
	BlockedItems []BlockedItem              `json:"blocked_items"` // the first blocked items
	BlockedCount int                        `json:"blocked_count"` // number of all blocked items
	Gaps         []Gap                      `json:"gaps"`          // gaps without an answer
}

// BlockedItem is a queued item that cannot start.
type BlockedItem struct {
	Item     *lockkeeper.Item          `json:"item"`
	Waiting  Seconds                   `json:"waiting_seconds"` // time since the item was queued
	Retries  int                       `json:"retries"`
	Blockers []lockkeeper.ConflictInfo `json:"blockers"` // empty: the item waits for a slot, or for another item
	For      string                    `json:"for"`      // the first reason, as text
}

// Gap is a refused write of a batch or of another holder.
type Gap struct {
	Ref    *progress.Ref `json:"ref,omitempty"` // nil: the gap belongs to no batch
	Unit   string        `json:"unit,omitempty"`
	Batch  string        `json:"batch,omitempty"`
	Holder string        `json:"holder,omitempty"`
	flow.Gap
}

// Cost is the cost of a run so far, with an estimate for the rest.
type Cost struct {
	USD          float64 `json:"usd"` // cost of this run
	Tokens       int64   `json:"tokens"`
	Calls        int     `json:"calls"`
	BudgetUSD    float64 `json:"budget_usd"`    // 0: no limit
	BudgetTokens int64   `json:"budget_tokens"` // 0: no limit
	RestUSD      float64 `json:"rest_usd"`      // estimated from the cost of completed phases
	TotalUSD     float64 `json:"total_usd"`     // USD and RestUSD
	Exhausted    bool    `json:"exhausted"`     // the budget is used up, and no call starts

	HourUSD float64 `json:"usd_per_hour,omitempty"` // what the run spent recently
}

func (rd *Reader) State(ctx context.Context) (*State, error) {
	return share(ctx, &rd.shared, "state", rd.state)
}

func (rd *Reader) state(ctx context.Context) (*State, error) {
	st := &State{}
	s, p, err := rd.flowState(ctx, "", func(s *snapshot, r store.Reader) error {
		if err := s.addBlocked(r); err != nil {
			return err
		}
		records, err := rd.project.Locks.GrantsIn(r)
		st.Locks.ActiveGrants, st.spelled = rd.grants.show(records, r.Now().Wall)
		return err
	})
	if err != nil {
		return nil, err
	}
	states := p.states(s.items)
	st.Moment, st.Flow, st.Phase, st.Error = s.Moment, s.flow, s.phase(), s.crash
	st.Controllers, st.Workflows = []Controller{}, map[string]Workflow{}
	for i, u := range p.units {
		st.Controllers = append(st.Controllers, Controller{Name: u.name, Status: states[i].Status})
		st.Workflows[u.name] = workflowOf(u, states[i])
	}
	st.Problems = problems(p.problem)
	if st.Cost, err = rd.cost(s, p, states); err != nil {
		st.Problems = append(st.Problems, "the cost: "+err.Error())
	}
	st.Locks.ActiveItems = acts.OrEmpty(s.active)
	st.Locks.QueueDepth, st.Locks.BlockedCount, st.Locks.BlockedItems = s.census.Queued(), s.census.Waiting, s.blockedItems()
	if st.Locks.Gaps, err = rd.gaps(ctx, p); err != nil {
		st.Problems = append(st.Problems, "rescued changes: "+err.Error())
	}
	return st, nil
}

func problems(texts ...string) []string {
	return slices.DeleteFunc(acts.OrEmpty(texts), func(text string) bool { return text == "" })
}

func workflowOf(u *unit, at run.UnitState) Workflow {
	w := Workflow{Status: at.Status, Pending: at.Pending, Since: at.Since, Item: at.Item, Note: at.Note, Error: at.Error,
		Batches: map[string]BatchStatus{}, Open: kindsOf(u.open)}
	if u.Unit != nil {
		w.Malformed = u.Malformed
	}
	for _, b := range at.Batches {
		w.Batches[b.ID] = BatchStatus{Status: b.Status, Pending: b.Pending, Since: b.Since, Item: b.Item, Note: b.Note, Error: b.Error, Blocked: b.Blocked}
	}
	return w
}

func kindsOf(open []progress.Decision) map[progress.Kind]int {
	count := map[progress.Kind]int{}
	for _, g := range open {
		count[g.Ref.Kind]++
	}
	return count
}

func (s *snapshot) blockedItems() []BlockedItem {
	list := []BlockedItem{}
	for _, e := range s.blocked {
		b := BlockedItem{Item: &e.Item, Waiting: seconds(max(0, s.At.Sub(e.Item.QueuedAt))), Retries: e.Item.Retries, Blockers: []lockkeeper.ConflictInfo{}, For: waitsOf(e)[0].Text}
		for _, w := range e.Locks {
			b.Blockers = append(b.Blockers, w.ConflictInfo)
		}
		list = append(list, b)
	}
	return list
}

// gaps lists refused writes without an answer: those of batches, and those kept for other
// holders.
func (rd *Reader) gaps(ctx context.Context, p *documents) ([]Gap, error) {
	list := []Gap{}
	known := map[string]bool{}
	for u, b := range p.eachBatch {
		for _, g := range b.Gaps() {
			known[g.Rescue] = true
			if g.Answer == "" {
				list = append(list, Gap{Ref: &progress.Ref{Kind: progress.GapKind, Unit: u.name, Batch: b.ID, Gap: g.Number}, Unit: u.name, Batch: b.ID, Gap: g.Gap})
			}
		}
	}
	kept, err := rd.rescued(ctx)
	for _, e := range kept {
		if e.Kind == rescue.Gap && !known[e.ID] {
			list = append(list, Gap{Holder: e.Holder, Gap: flow.Gap{Path: e.Path, Reason: e.Reason, Rescue: e.ID, At: e.At}})
		}
	}
	slices.SortStableFunc(list, func(a, b Gap) int { return a.At.Compare(b.At) })
	return list, err
}

package web

import (
	"context"
	"net/http"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/surface/view"
)

// A pageKind is one page: a template, and the function that gathers its data.
type pageKind struct {
	name     string // name of the template
	pattern  string
	title    string
	question string // question that the page answers
	key      string // opens the page after g; empty: the page is not in the menu
	topics   string // topics of the events that refresh the page
	bare     bool   // sent to scripts without the frame of a page
	data     func(d *Dashboard, w http.ResponseWriter, r *http.Request) (any, error)
}

// pages lists all pages; those in the menu in its order. A new page is an entry here, a
// template of the same name, and a file with its data function.
func pages() []pageKind {
	return []pageKind{
		{name: "now", pattern: "/{$}", title: "Now", question: "what needs you, what is stuck, what changed, what it costs", key: "n", topics: "locks queue gate people", data: (*Dashboard).nowPage},
		{name: "decide", pattern: "/decide", title: "Decide", question: "what to do, and what not", key: "d", topics: "queue gate people", data: (*Dashboard).decidePage},
		{name: "board", pattern: "/board", title: "Board", question: "where everything is", key: "b", topics: "queue gate people", data: (*Dashboard).boardPage},
		{name: "items", pattern: "/items", title: "Work", question: "everything that was queued", key: "w", topics: "queue", data: (*Dashboard).itemsPage},
		{name: "locks", pattern: "/locks", title: "Locks", question: "who holds what, and who waits for whom", key: "l", topics: "locks queue gate", data: (*Dashboard).locksPage},
		{name: "timeline", pattern: "/timeline", title: "Timeline", question: "where the time went", key: "t", topics: "queue gate", data: (*Dashboard).timelinePage},
		{name: "run", pattern: "/run", title: "Run", question: "what was done, what it cost, what was refused", key: "r", topics: "queue gate people", data: (*Dashboard).runPage},
		{name: "rescue", pattern: "/rescue", title: "Rescue", question: "what could not land, and is kept", key: "e", topics: "gate", data: (*Dashboard).rescuePage},
		{name: "nodes", pattern: "/nodes", title: "Nodes", question: "who takes part, and what is enforced", key: "o", topics: "locks queue", data: (*Dashboard).nodesPage},
		{name: "audit", pattern: "/audit", title: "Audit", question: "who did what, and when", key: "a", topics: "locks queue gate people", data: (*Dashboard).auditPage},
		{name: "item", pattern: "/item/{id}", title: "Item", question: "why it is where it is, and what can be done about it", topics: "queue gate locks people", data: (*Dashboard).itemPage},
		{name: "item-log", pattern: "/item/{id}/log", title: "Log", question: "what the agent or command of an item says", bare: true, data: (*Dashboard).itemPage},
		{name: "kept", pattern: "/rescue/{id}", title: "Rescue", question: "what it would change", topics: "gate", data: (*Dashboard).keptPage},
	}
}

// topics maps each kind of event to the topics that it concerns. A kind that is missing
// here refreshes every page.
var topics = map[lockkeeper.EventKind]string{
	lockkeeper.EventAcquired: "locks queue", lockkeeper.EventReleased: "locks queue", lockkeeper.EventRecovered: "locks queue",
	lockkeeper.EventExpired: "locks queue", lockkeeper.EventForceReleased: "locks queue", lockkeeper.EventRecoverFailed: "locks queue",
	lockkeeper.EventDenied: "locks", lockkeeper.EventWaiting: "locks", lockkeeper.EventWithdrawn: "locks", lockkeeper.EventTimedOut: "locks",
	lockkeeper.EventRenewFailed: "locks", lockkeeper.EventUpgraded: "locks", lockkeeper.EventUpgradeDenied: "locks",
	lockkeeper.EventExtended: "locks", lockkeeper.EventExtendDenied: "locks", lockkeeper.EventRevoking: "locks gate",
	lockkeeper.EventLanded: "gate", lockkeeper.EventUndone: "gate", lockkeeper.EventFinished: "gate", lockkeeper.EventCleared: "gate",
	lockkeeper.EventQueued: "queue", lockkeeper.EventBlocked: "queue locks", lockkeeper.EventEscalated: "queue locks", lockkeeper.EventFailed: "queue", lockkeeper.EventRequeued: "queue",
	lockkeeper.EventDecided: "people", lockkeeper.EventRefused: "people", lockkeeper.EventEpoch: "locks queue gate people",
	lockkeeper.EventGap: "locks queue gate people", // also sent by the stream where the log has pruned events
}

// Views are the sources of the pages. A *view.Reader implements it; tests use others.
type Views interface {
	Now(ctx context.Context, since uint64) (*view.Now, error)
	Decisions(ctx context.Context, flow string) (*view.Decisions, error)
	Decision(ctx context.Context, flow string, ref progress.Ref) (*view.Decision, error)
	Board(ctx context.Context, flow string) (*view.Board, error)
	Item(ctx context.Context, name string) (*view.Item, error)
	Items(ctx context.Context, q view.ItemsQuery) (*view.Items, error)
	Locks(ctx context.Context) (*view.Locks, error)
	Timeline(ctx context.Context, from, to time.Time) (*view.Timeline, error)
	Run(ctx context.Context, flow string) (*view.Run, error)
	Rescue(ctx context.Context) (*view.Rescue, error)
	Rescued(ctx context.Context, id string) (*view.RescueDetail, error)
	Nodes(ctx context.Context) (*view.Nodes, error)
	Audit(ctx context.Context, q view.AuditQuery) (*view.Audit, error)
}

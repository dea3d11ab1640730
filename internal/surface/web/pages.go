package web

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strconv"

	"lockkeeper"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/surface/access"
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
	diffs    bool   // may show a diff
	data     func(d *Dashboard, w http.ResponseWriter, r *http.Request) (any, error)
}

// pages returns all pages. Those in the menu are in the order of the menu. A new page is an entry here,
// a template of the same name, and its data function.
func pages() []pageKind {
	return []pageKind{
		{name: "now", pattern: "/{$}", title: "Now", question: "what needs your attention, what is stuck, what changed, what the run costs", key: "n", topics: "locks queue gate people", data: (*Dashboard).nowPage},
		{name: "decide", pattern: "/decide", title: "Decide", question: "which decisions are open", key: "d", topics: "queue gate people", diffs: true, data: (*Dashboard).decidePage},
		{name: "board", pattern: "/board", title: "Board", question: "which phase each unit is in", key: "b", topics: "queue gate people", data: (*Dashboard).boardPage},
		{name: "items", pattern: "/items", title: "Work", question: "which items are queued, running or finished", key: "w", topics: "queue", data: (*Dashboard).itemsPage},
		{name: "locks", pattern: "/locks", title: "Locks", question: "who holds which locks, and who waits for them", key: "l", topics: "locks queue gate", data: (*Dashboard).locksPage},
		{name: "timeline", pattern: "/timeline", title: "Timeline", question: "when each piece of work ran, waited and landed", key: "t", topics: "queue gate", data: (*Dashboard).timelinePage},
		{name: "run", pattern: "/run", title: "Run", question: "what the run did, what it cost, which writes were refused", key: "r", topics: "queue gate people", data: (*Dashboard).runPage},
		{name: "rescue", pattern: "/rescue", title: "Rescue", question: "which writes could not land and are saved", key: "e", topics: "gate", data: (*Dashboard).rescuePage},
		{name: "nodes", pattern: "/nodes", title: "Nodes", question: "which machines take part, and which protections are active", key: "o", topics: "locks queue", data: (*Dashboard).nodesPage},
		{name: "audit", pattern: "/audit", title: "Audit", question: "who did what, and when", key: "a", topics: "locks queue gate people", data: (*Dashboard).auditPage},
		{name: "unit", pattern: "/unit/{name...}", title: "Unit", question: "what was found, decided, changed and landed, what it cost, and what it waits for", topics: "queue gate locks people", data: (*Dashboard).unitPage},
		{name: "batch-diff", pattern: "/diff/{name...}", title: "Diff", question: "what the batch changes", topics: "queue gate people", diffs: true, data: (*Dashboard).diffPage},
		{name: "landing", pattern: "/landing/{seq}", title: "Landing", question: "what the landing changed, and whether it can be undone", topics: "gate people", diffs: true, data: (*Dashboard).landingPage},
		{name: "item", pattern: "/item/{name...}", title: "Item", question: "what the item waits for, and what you can do about it", topics: "queue gate locks people", diffs: true, data: (*Dashboard).itemPage},
		{name: "item-log", pattern: "/log/{name...}", title: "Log", question: "the output of the item's agent or command", bare: true, data: (*Dashboard).logPage},
		{name: "call", pattern: "/call/{name...}", title: "Call", question: "what the agent was sent, and what it answered", topics: "queue", data: (*Dashboard).callPage},
		{name: "kept", pattern: "/rescue/{id}", title: "Rescue", question: "what landing this write would change", topics: "gate", diffs: true, data: (*Dashboard).keptPage},
	}
}

// topics maps each kind of event to the topics that it concerns. A kind that is not
// listed refreshes every page.
var topics = map[lockkeeper.EventKind]string{
	lockkeeper.EventAcquired: "locks queue", lockkeeper.EventReleased: "locks queue", lockkeeper.EventRecovered: "locks queue",
	lockkeeper.EventExpired: "locks queue", lockkeeper.EventForceReleased: "locks queue", lockkeeper.EventRecoverFailed: "locks queue",
	lockkeeper.EventDenied: "locks", lockkeeper.EventWaiting: "locks", lockkeeper.EventWithdrawn: "locks", lockkeeper.EventTimedOut: "locks",
	lockkeeper.EventRenewFailed: "locks", lockkeeper.EventUpgraded: "locks", lockkeeper.EventUpgradeDenied: "locks",
	lockkeeper.EventExtended: "locks", lockkeeper.EventExtendDenied: "locks", lockkeeper.EventRevoking: "locks gate",
	lockkeeper.EventLanded: "gate", lockkeeper.EventReplaced: "gate", lockkeeper.EventUndone: "gate", lockkeeper.EventFinished: "gate", lockkeeper.EventCleared: "gate",
	lockkeeper.EventQueued: "queue", lockkeeper.EventBlocked: "queue locks", lockkeeper.EventEscalated: "queue locks", lockkeeper.EventFailed: "queue", lockkeeper.EventRequeued: "queue",
	lockkeeper.EventDecided: "people", lockkeeper.EventRefused: "people", lockkeeper.EventAsked: "people", lockkeeper.EventEpoch: "locks queue gate people",
	lockkeeper.EventGap: "locks queue gate people", // the event stream also sends this event in place of pruned events
}

// Views are the sources of the pages. A *view.Reader implements it; tests use others.
type Views interface {
	Now(ctx context.Context, since uint64) (*view.Now, error)
	Decisions(ctx context.Context, flow string) (*view.Decisions, error)
	Decision(ctx context.Context, flow string, ref progress.Ref) (*view.Decision, error)
	Board(ctx context.Context, flow string) (*view.Board, error)
	Unit(ctx context.Context, flow, name string) (*view.Unit, error)
	BatchChange(ctx context.Context, flow, unit, batch string) (*view.BatchChange, error)
	Landing(ctx context.Context, seq uint64) (*view.LandingDetail, error)
	Item(ctx context.Context, name string) (*view.Item, error)
	ReadItemNames(ctx context.Context) error
	NewestItem(name string) string
	NameOfItem(id string) string
	CurrentFlow() string
	Call(ctx context.Context, item string, number int) (*view.CallDetail, error)
	Items(ctx context.Context, q view.ItemsQuery) (*view.Items, error)
	Locks(ctx context.Context) (*view.Locks, error)
	Timeline(ctx context.Context, q view.TimelineQuery) (*view.Timeline, error)
	Run(ctx context.Context, flow string) (*view.Run, error)
	Landings(ctx context.Context, q view.LandingsQuery) (*view.Landings, error)
	Rescue(ctx context.Context) (*view.Rescue, error)
	Rescued(ctx context.Context, id string) (*view.RescueDetail, error)
	Fits(ctx context.Context, entries []view.RescueEntry) error
	Nodes(ctx context.Context) (*view.Nodes, error)
	Audit(ctx context.Context, q view.AuditQuery) (*view.Audit, error)
}

type nodesData struct {
	*view.Nodes
	People []access.Account
	Known  bool // the accounts of the server are known
}

func (d *Dashboard) nodesPage(_ http.ResponseWriter, r *http.Request) (any, error) {
	nodes, err := d.view.Nodes(r.Context())
	if err != nil {
		return nil, err
	}
	data := nodesData{Nodes: nodes, Known: d.people != nil}
	if d.people != nil {
		data.People, err = d.people.List()
	}
	return data, err
}

type itemData struct {
	*view.Item
	Live bool // the item is running, so its log grows
}

// Name returns the name of the item for people and in addresses.
func (i itemData) Name() string { return view.ItemName(&i.Why.Item) }

func (i itemData) heading() string { return i.Name() }

func (d *Dashboard) itemPage(_ http.ResponseWriter, r *http.Request) (any, error) {
	if err := d.moved(r); err != nil {
		return nil, err
	}
	it, err := d.view.Item(r.Context(), d.itemIn(r))
	if err != nil {
		return nil, err
	}
	is, name := &it.Why.Item, view.ItemName(&it.Why.Item)
	if err := d.readable(r, is.ID, is.Key, name, func() string { return d.toItem(is.ID, name) }); err != nil {
		return nil, err
	}
	return itemData{Item: it, Live: it.Why.Item.Status == lockkeeper.ItemDispatched}, nil
}

// logPage returns the end of the log of an item, or of one of its calls.
func (d *Dashboard) logPage(_ http.ResponseWriter, r *http.Request) (any, error) {
	if n, err := pageNumber(r.URL.Query().Get("n")); err != nil {
		return nil, err
	} else if n > 0 {
		c, err := d.view.Call(r.Context(), d.itemIn(r), int(min(n, math.MaxInt32)))
		return callData{c}, err
	}
	it, err := d.view.Item(r.Context(), d.itemIn(r))
	return itemData{Item: it}, err
}

type callData struct{ *view.CallDetail }

func (c callData) heading() string { return fmt.Sprintf("%s, call %d", c.Name, c.Number) }

func (d *Dashboard) callPage(_ http.ResponseWriter, r *http.Request) (any, error) {
	n, err := pageNumber(r.URL.Query().Get("n"))
	if err != nil {
		return nil, err
	}
	c, err := d.view.Call(r.Context(), d.itemIn(r), int(min(n, math.MaxInt32)))
	if err == nil {
		err = d.readable(r, c.Item, "", c.Name, func() string { return d.toCall(c.Item, c.Name, c.Number) })
	}
	return callData{c}, err
}

// pageNumber parses where a page of a list begins. Empty means at the start.
func pageNumber(text string) (uint64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, &lockkeeper.InputError{Field: "page", Value: text, Reason: "not a number", Next: "go to the first page"}
	}
	return n, nil
}

package api

import (
	"strings"

	"lockkeeper"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/view"
)

// queueRoutes returns the routes of the queue.
func queueRoutes() []route {
	items := api + "/items"
	return []route{
		ask(items, viewers, "Items of the queue, the newest first.", listItems),
		ask(items+"/{id}", viewers, "Why a piece of work is where it is, and what can be done about it.", func(s *Server, c *call, _ nothing) (*view.Item, error) {
			return s.opt.View.Item(c.r.Context(), c.r.PathValue("id"))
		}),
		ask(items+"/{id}/log", viewers, "What its agent or command says, from a place on.", func(s *Server, c *call, q struct {
			From int64 `json:"from"`
		}) (*view.Log, error) {
			return s.opt.View.ItemLog(c.r.Context(), c.r.PathValue("id"), q.From)
		}),
		act(items+"/{id}/retry", operators, "Put a failed item back into the queue, with a note for whoever takes it up.", retryItem),
		act(items+"/{id}/cancel", operators, "Take an item out of the queue. One that runs is ended: confirm is its id.", cancelItem),
	}
}

func listItems(s *Server, c *call, q struct {
	Status string `json:"status" doc:"queued, dispatched, completed or error; empty: any."`
	After  uint64 `json:"after" doc:"The next of the last page."`
	paged
}) (*view.Items, error) {
	status := lockkeeper.ItemStatus(q.Status)
	switch status {
	case "", lockkeeper.ItemQueued, lockkeeper.ItemDispatched, lockkeeper.ItemCompleted, lockkeeper.ItemError:
	default:
		return nil, &lockkeeper.InputError{Field: "status", Value: q.Status, Reason: "no item has it", Next: "use queued, dispatched, completed or error"}
	}
	return s.opt.View.Items(c.r.Context(), view.ItemsQuery{Status: status, After: q.After, Limit: *q.Limit})
}

// item returns the item that the URL names.
func (s *Server) item(c *call) (*lockkeeper.Item, error) {
	name := c.r.PathValue("id")
	it, err := s.queue.Find(c.r.Context(), name)
	if err == nil && it == nil {
		err = &refusal{code: codeNotFound, reason: "no item has the id, the key or the name " + name, next: "GET " + api + "/items lists those that there are"}
	}
	return it, err
}

// changed is the response to an act on an item: the item in its new state.
type changed struct {
	Item *lockkeeper.Item `json:"item"`
}

func retryItem(s *Server, c *call, in struct {
	Note string `json:"note,omitempty"`
}) (changed, error) {
	it, err := s.item(c)
	if err != nil {
		return changed{}, err
	}
	it, err = acts.RetryItem(c.r.Context(), s.opt.App, it, strings.TrimSpace(in.Note), c.who.Actor())
	return changed{it}, err
}

func cancelItem(s *Server, c *call, in struct {
	Reason  string `json:"reason,omitempty"`
	Confirm string `json:"confirm,omitempty"` // for a running item: its id
}) (changed, error) {
	it, err := s.item(c)
	if err != nil {
		return changed{}, err
	}
	if it.IsHolding() && in.Confirm != it.ID {
		return changed{}, &lockkeeper.InputError{Field: "confirm", Reason: "it runs: it would lose its locks, and what runs under them is ended", Next: "send its id as confirm"}
	}
	it, err = s.queue.Cancel(c.r.Context(), it.ID, c.who.Actor(), strings.TrimSpace(in.Reason))
	return changed{it}, err
}

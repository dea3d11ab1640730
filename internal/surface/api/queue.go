package api

import (
	"path/filepath"
	"strconv"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/view"
)

func queueRoutes() []route {
	items := api + "/items"
	return []route{
		ask(items, viewers, "Items of the queue, the newest first.", listItems),
		ask(items+"/{id}", viewers, "Why an item is in its state, and what can be done about it.", func(s *Server, c *call, _ nothing) (*view.Item, error) {
			return s.opt.View.Item(c.r.Context(), c.r.PathValue("id"))
		}),
		ask(items+"/{id}/log", viewers, "The output of the item's agent or command, from an offset.", func(s *Server, c *call, q struct {
			From int64 `json:"from"`
		}) (*view.Log, error) {
			return s.opt.View.ItemLog(c.r.Context(), c.r.PathValue("id"), q.From)
		}),
		ask(items+"/{id}/calls/{n}", viewers, "A call of an agent for the item, counted from 1: its prompt, its answer, and all that it printed, up to 1 MiB each.", func(s *Server, c *call, _ nothing) (*view.CallDetail, error) {
			n, err := strconv.Atoi(c.r.PathValue("n"))
			if err != nil {
				n = -1 // no call has this number
			}
			return s.opt.View.Call(c.r.Context(), c.r.PathValue("id"), n)
		}),
		act(items+"/{id}/retry", operators, "Retry a failed item, with a note for its next agent.", retryItem),
		act(items+"/{id}/cancel", operators, "Cancel an item. To stop a running item, send its id as confirm.", cancelItem),
	}
}

func listItems(s *Server, c *call, q struct {
	Status string `json:"status" doc:"queued, dispatched, completed or error; empty: any."`
	Unit   string `json:"unit" doc:"A unit of a flow."`
	Phase  string `json:"phase"`
	Text   string `json:"text" doc:"Text to find in the name, the id, the note or the reason of a failure."`
	After  uint64 `json:"after" doc:"The field next of the previous page."`
	paged
}) (*view.Items, error) {
	status := lockkeeper.ItemStatus(q.Status)
	switch status {
	case "", lockkeeper.ItemQueued, lockkeeper.ItemDispatched, lockkeeper.ItemCompleted, lockkeeper.ItemError:
	default:
		return nil, &lockkeeper.InputError{Field: "status", Value: q.Status, Reason: "unknown status", Next: "use queued, dispatched, completed or error"}
	}
	return s.opt.View.Items(c.r.Context(), view.ItemsQuery{Status: status, Unit: q.Unit, Phase: q.Phase, Text: q.Text, After: q.After, Limit: *q.Limit})
}

func (s *Server) item(c *call) (*lockkeeper.Item, error) {
	name := c.r.PathValue("id")
	it, err := s.queue.Find(c.r.Context(), name)
	if err == nil && it == nil {
		err = &refusal{code: codeNotFound, reason: "no item has the id, the key or the name " + name, next: "GET " + api + "/items lists them all"}
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
	Confirm string `json:"confirm,omitempty"` // id of a running item
}) (changed, error) {
	it, err := s.item(c)
	if err != nil {
		return changed{}, err
	}
	if it.IsHolding() && in.Confirm != it.ID {
		return changed{}, &lockkeeper.InputError{Field: "confirm", Reason: "the item runs: it would lose its locks, and its processes would be stopped", Next: "send its id as confirm"}
	}
	it, err = s.queue.Cancel(c.r.Context(), it.ID, c.who.Actor(), strings.TrimSpace(in.Reason))
	return changed{it}, err
}

// runRoutes returns the routes that start and stop runs. Two of them have the URLs that the documents use.
func runRoutes() []route {
	phase := act("/pipeline/{phase}/{unit...}", operators, "Start a phase of a unit.", func(s *Server, c *call, _ nothing) (phaseStarted, error) {
		return s.startPhase(c, c.r.PathValue("phase"))
	})
	return []route{
		phase,
		phase.under(api),
		act("/analyze/{unit...}", operators, "Start the analysis of a unit: an older name of /pipeline/analyze.", func(s *Server, c *call, _ nothing) (phaseStarted, error) {
			return s.startPhase(c, "analyze")
		}),
		ask(api+"/run/state", viewers, "The run of this server, or the result of its last run.", func(s *Server, _ *call, _ nothing) (acts.Running, error) {
			return s.opt.Runs.Now(), nil
		}),
		act(api+"/run/start", operators, "Start a run, or resume it.", startRun),
		act(api+"/run/stop", operators, "Stop the run: when its agents have finished, or at once with now.", stopRun),
	}
}

type phaseStarted struct {
	Unit  string `json:"unit"`
	Phase string `json:"phase"`
}

func (s *Server) startPhase(c *call, phase string) (phaseStarted, error) {
	unit := c.r.PathValue("unit")
	return phaseStarted{unit, phase}, s.opt.Runs.Phase(c.r.Context(), unit, phase, c.who.Actor())
}

func startRun(s *Server, c *call, in conduct.Options) (acts.Started, error) {
	if in.Plan != "" && !filepath.IsLocal(filepath.FromSlash(in.Plan)) {
		return acts.Started{}, &lockkeeper.InputError{Field: "plan", Value: in.Plan, Reason: "not a file below the root", Next: "name a file by its path from the root"}
	}
	in.By = c.who.Actor()
	return s.opt.Runs.Start(c.r.Context(), in)
}

func stopRun(s *Server, c *call, in acts.StopOptions) (acts.Running, error) {
	if err := s.opt.Runs.Stop(c.r.Context(), in, c.who.Actor()); err != nil {
		return acts.Running{}, err
	}
	return s.opt.Runs.Now(), nil
}

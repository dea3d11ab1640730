package api

import (
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/surface/view"
)

func viewRoutes() []route {
	state := raw(http.MethodGet, "/state", viewers, "", "The complete state.", serveState)
	state.out = typeOf[view.State]()
	return []route{
		state, state.under(api),
		ask(api+"/now", viewers, "What needs a decision, what is stuck, what changed since an event, what the run costs.", func(s *Server, c *call, q struct {
			Since uint64 `json:"since" doc:"The last event that the client has seen."`
		}) (*view.Now, error) {
			return s.opt.View.Now(c.r.Context(), q.Since)
		}),
		ask(api+"/waiting", viewers, "Open decisions, the most useful first.", waiting),
		ask(api+"/waiting/{kind}/{name...}", viewers, "The details of one open or past decision.", gateDetail),
		ask(api+"/board", viewers, "The phase of every unit of a flow.", func(s *Server, c *call, q flowQuery) (*view.Board, error) {
			return s.opt.View.Board(c.r.Context(), q.Flow)
		}),
		ask(api+"/units/{name...}", viewers, "One unit: what was found, decided, changed and landed, its calls, its cost, and what it waits for.", func(s *Server, c *call, q flowQuery) (*view.Unit, error) {
			unit, err := s.opt.View.Unit(c.r.Context(), q.Flow, c.r.PathValue("name"))
			return unit, unknownName(err)
		}),
		ask(api+"/diffs/{name...}", viewers, "A batch, named unit/batch, with its diff.", func(s *Server, c *call, q flowQuery) (*view.BatchChange, error) {
			unit, batch := path.Split(c.r.PathValue("name"))
			change, err := s.opt.View.BatchChange(c.r.Context(), q.Flow, strings.TrimSuffix(unit, "/"), batch)
			return change, unknownName(err)
		}),
		ask(api+"/locks", viewers, "Who holds what, who waits for whom, who wrote last.", func(s *Server, c *call, _ nothing) (*view.Locks, error) {
			return s.opt.View.Locks(c.r.Context())
		}),
		ask(api+"/timeline", viewers, "When each piece of work ran, waited and landed.", func(s *Server, c *call, q struct {
			From time.Time `json:"from"`
			To   time.Time `json:"to"`
			Text string    `json:"text" doc:"Text to find in the name of the work."`
			Sort string    `json:"sort" doc:"name, start, time, waited or cost."`
		}) (*view.Timeline, error) {
			return s.opt.View.Timeline(c.r.Context(), view.TimelineQuery{From: q.From, To: q.To, Text: q.Text, Sort: q.Sort})
		}),
		ask(api+"/run", viewers, "What a flow did, what was refused, what landed.", func(s *Server, c *call, q flowQuery) (*view.Run, error) {
			run, err := s.opt.View.Run(c.r.Context(), q.Flow)
			if err != nil {
				return nil, err
			}
			return run.With(s.opt.Runs.Now().Troubles(run.Line.Flow)), nil
		}),
		ask(api+"/nodes", viewers, "Which machines take part, and which protections are active here.", func(s *Server, c *call, _ nothing) (*view.Nodes, error) {
			return s.opt.View.Nodes(c.r.Context())
		}),
		ask(api+"/audit", viewers, "Who did what, the newest first.", audit),
	}
}

type flowQuery struct {
	Flow string `json:"flow" doc:"controllers, screens or tasks; empty: the current or last flow."`
}

// These constants limit the size of pages.
const (
	pageUsual  = 100
	pageLimit  = 1_000
	pageReason = "from 1 to 1000"
)

// paged is the part of a query that limits a page.
type paged struct {
	Limit *int `json:"limit"` // check sets the default
}

// check sets the default, and refuses an invalid limit.
func (p *paged) check() error {
	if p.Limit == nil {
		p.Limit = new(pageUsual)
	}
	if *p.Limit < 1 || *p.Limit > pageLimit {
		return &lockkeeper.InputError{Field: "limit", Value: strconv.Itoa(*p.Limit), Reason: "it must be " + pageReason, Next: "leave it out for " + strconv.Itoa(pageUsual)}
	}
	return nil
}

// serveState writes the whole state. It uses the state's own JSON encoder, because this is the most frequent and
// the longest response.
func serveState(s *Server, c *call) error {
	state, err := s.opt.View.State(c.r.Context())
	if err != nil {
		return err
	}
	body, err := state.JSON()
	if err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", "application/json; charset=utf-8")
	c.w.Write(body)
	return nil
}

type waitingPage struct {
	*view.Decisions
	Next *progress.Ref `json:"next,omitempty"` // after of the next page; nil: this is the last page
}

func waiting(s *Server, c *call, q struct {
	flowQuery
	paged
	After string `json:"after" doc:"The field next of the previous page."`
}) (waitingPage, error) {
	queue, err := s.opt.View.Decisions(c.r.Context(), q.Flow)
	if err != nil {
		return waitingPage{}, err
	}
	page := waitingPage{Decisions: queue}
	if q.After != "" {
		at := slices.IndexFunc(queue.Open, func(w view.OpenDecision) bool { return w.Ref.String() == q.After })
		if at < 0 {
			return page, &lockkeeper.InputError{Field: "after", Value: q.After, Reason: "this decision is no longer open", Next: "start again with the first page"}
		}
		queue.Open = queue.Open[at+1:]
	}
	if limit := *q.Limit; len(queue.Open) > limit {
		queue.Open = queue.Open[:limit]
		page.Next = &queue.Open[limit-1].Ref
	}
	return page, nil
}

// unknownName returns an error about a name in the URL as one about a missing resource.
func unknownName(err error) error {
	if lockkeeper.CodeOf(err) == lockkeeper.CodeInput {
		return &notFound{err}
	}
	return err
}

func gateDetail(s *Server, c *call, q flowQuery) (*view.Decision, error) {
	ref, err := progress.ParseRef(c.r.PathValue("kind") + " " + c.r.PathValue("name"))
	if err != nil {
		return nil, &notFound{err}
	}
	detail, err := s.opt.View.Decision(c.r.Context(), q.Flow, ref)
	return detail, unknownName(err)
}

func audit(s *Server, c *call, q struct {
	paged
	After uint64    `json:"after" doc:"The field next of the previous page."`
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	Who   string    `json:"who" doc:"A holder, an actor, an item, or the name of an item."`
	Path  string    `json:"path"`
	Kind  []string  `json:"kind" doc:"A kind of event. Can be repeated."`
	Text  string    `json:"text" doc:"Text to find in the line."`

	Internal bool `json:"internal" doc:"Also list locks of documents, .lockkeeper and .git that came and went in order. A query with who or path always lists them."`
}) (*view.Audit, error) {
	return s.opt.View.Audit(c.r.Context(), view.AuditQuery{Since: q.Since, Until: q.Until, Who: q.Who, Path: q.Path, Kinds: q.Kind, Text: q.Text, Internal: q.Internal, Before: q.After, Limit: *q.Limit})
}

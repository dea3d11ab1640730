package api

import (
	"net/http"
	"reflect"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/surface/acts"
)

func decideRoutes() (list []route) {
	means := map[string][]string{}
	var words []string
	for _, a := range acts.Answers() {
		if means[a.Word] == nil {
			words = append(words, a.Word)
		}
		means[a.Word] = append(means[a.Word], string(a.Kind)+": "+a.Means)
	}
	for _, word := range words {
		rt := flowAct("/decide/"+word, "Answer "+word+". "+strings.Join(means[word], "; ")+".", func(d *acts.Decider, c *call, in answering) (acts.Verdict, error) {
			return in.give(d, c, word)
		})
		if word == "answer" { // pasted research can be long
			rt = rt.withLargeBody()
		}
		list = append(list, rt)
	}
	return append(list,
		ask(api+"/failures", viewers, "Failed work by cause: the same test, or the same message.", func(s *Server, c *call, q flowQuery) (causes, error) {
			d, err := s.decider(c)
			if err != nil {
				return causes{}, err
			}
			list, err := d.Causes(c.r.Context())
			return causes{list}, err
		}),
		flowAct("/failures/retry", "Retry all failures of one cause.", func(d *acts.Decider, c *call, in acts.RetryCause) (acts.Verdict, error) {
			return in.Do(c.r.Context(), d)
		}),
		flowAct("/failures/exclude", "Exclude all failed work of one cause from runs.", func(d *acts.Decider, c *call, in acts.ExcludeCause) (acts.Verdict, error) {
			return in.Do(c.r.Context(), d)
		}),
		flowAct("/excluded/include", "Include units and batches in runs again.", func(d *acts.Decider, c *call, in struct {
			Names []string `json:"names"`
		}) (acts.Verdict, error) {
			return d.IncludeAll(c.r.Context(), in.Names)
		}),
		flowAct("/decide/undo", "Withdraw answers that have had no effect yet.", func(d *acts.Decider, c *call, in struct {
			Refs []progress.Ref `json:"refs"`
		}) (acts.Verdict, error) {
			return d.Withdraw(c.r.Context(), in.Refs)
		}),
		flowAct("/decide/items", "Decide several items, each with its own answer; all items of a unit or none.", func(d *acts.Decider, c *call, in struct {
			Choices []acts.Choice `json:"choices"`
			Seen    acts.Seen     `json:"seen,omitempty"`
		}) (acts.Verdict, error) {
			return d.Decide(c.r.Context(), in.Choices, in.Seen)
		}),
	)
}

type causes struct {
	Causes []conduct.Cause `json:"causes"`
}

// answering is an answer to the decisions in refs, or to all that match a rule. If a decision
// no longer has the version in seen, the answer to it is refused.
type answering struct {
	Refs  []progress.Ref `json:"refs,omitempty"`
	Where string         `json:"where,omitempty"` // instead of refs: conditions such as unit=admin/*,impact<=low
	acts.AnswerInput
}

// An outcome lists the completed and the refused parts of an act.
type outcome struct {
	acts.Verdict
	Refused []map[string]any `json:"refused"`
}

func (in answering) give(d *acts.Decider, c *call, word string) (acts.Verdict, error) {
	if in.Where == "" {
		return d.Give(c.r.Context(), word, in.Refs, in.AnswerInput)
	}
	if len(in.Refs) > 0 {
		return acts.Verdict{}, &lockkeeper.InputError{Field: "where", Value: in.Where, Reason: "where and refs exclude each other", Next: "give one of them"}
	}
	matches, err := d.Matching(c.r.Context(), in.Where, acts.KindsOf(word)...)
	if err != nil {
		return acts.Verdict{}, err
	}
	if len(matches) == 0 {
		return d.State(c.r.Context())
	}
	return d.GiveWhere(c.r.Context(), word, in.Where, in.AnswerInput)
}

func flowAct[In any](pattern, summary string, do func(d *acts.Decider, c *call, in In) (acts.Verdict, error)) route {
	return act(api+pattern, operators, summary, func(s *Server, c *call, in In) (outcome, error) {
		return s.verdict(c, func(d *acts.Decider) (acts.Verdict, error) { return do(d, c, in) })
	}).of(typeOf[flowQuery]())
}

// verdict performs an act on the documents of the flow that the query names. If all of the act
// was refused, it returns an error; if a part was, the outcome lists that part.
func (s *Server) verdict(c *call, do func(d *acts.Decider) (acts.Verdict, error)) (outcome, error) {
	d, err := s.decider(c)
	if err != nil {
		return outcome{}, err
	}
	v, err := do(d)
	if err != nil {
		return outcome{}, err
	}
	if len(v.Done) == 0 && len(v.Refused) > 0 {
		return outcome{}, &partsRefused{v.Refused}
	}
	return outcome{v, listOf(v.Refused)}, nil
}

func (s *Server) decider(c *call) (*acts.Decider, error) {
	q, err := decodeQuery[flowQuery](c.r.URL.RawQuery)
	if err != nil {
		return nil, err
	}
	return acts.Open(c.r.Context(), s.opt.App, q.Flow, c.who.Actor())
}

// unitRoutes returns the routes for acts on a unit and its plan. Unit names contain slashes, so the act comes
// before the unit in the URL.
func unitRoutes() []route {
	list := []route{act(api+"/units/undo/{unit...}", operators, "Undo the landings of a batch of a unit.", undoBatch).of(typeOf[flowQuery]())}
	for _, a := range acts.UnitActs() {
		list = append(list, route{method: http.MethodPost, pattern: api + "/units/" + a.Name + "/{unit...}", summary: a.Summary + ".", need: operators,
			query: typeOf[flowQuery](), in: reflect.TypeOf(a.New()).Elem(), out: typeOf[outcome](), whole: true, serve: func(s *Server, c *call) error {
				in := a.New()
				if err := decodeBody(c.r, in); err != nil {
					return err
				}
				return c.reply(s.verdict(c, func(d *acts.Decider) (acts.Verdict, error) {
					return in.Do(c.r.Context(), d, c.r.PathValue("unit"))
				}))
			}})
	}
	return list
}

func undoBatch(s *Server, c *call, in struct {
	Batch string `json:"batch"`
}) (*acts.Undone, error) {
	if in.Batch == "" {
		return nil, &lockkeeper.InputError{Field: "batch", Reason: "required", Next: "name the batch to undo"}
	}
	d, err := s.decider(c)
	if err != nil {
		return nil, err
	}
	return d.UndoBatch(c.r.Context(), c.r.PathValue("unit"), in.Batch, acts.Holding(s.opt.App, c.who.Actor()))
}

package api

import (
	"strings"

	"lockkeeper"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/surface/acts"
)

// decideRoutes are a person's answers: one for every word that can be said.
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
		if word == "answer" { // what was found elsewhere may be long
			rt = rt.withLargeBody()
		}
		list = append(list, rt)
	}
	return append(list,
		flowAct("/decide/undo", "Take answers back, as far as nothing was made of them.", func(d *acts.Decider, c *call, in struct {
			Refs []progress.Ref `json:"refs"`
		}) (acts.Verdict, error) {
			return d.Withdraw(c.r.Context(), in.Refs)
		}),
		flowAct("/decide/items", "Decide on items, each in its own way; those of one unit all or none.", func(d *acts.Decider, c *call, in struct {
			Choices []acts.Choice `json:"choices"`
			Seen    acts.Seen     `json:"seen,omitempty"`
		}) (acts.Verdict, error) {
			return d.Decide(c.r.Context(), in.Choices, in.Seen)
		}),
	)
}

// answering is an answer, to some things or to all that a rule names. seen has the versions
// that the person had in front of them: what is not so any more is refused.
type answering struct {
	Refs  []progress.Ref `json:"refs,omitempty"`
	Where string         `json:"where,omitempty"` // instead of refs, of items: a rule such as impact<=low,effort>=high
	acts.AnswerInput
}

// judged is what came of an act: what was done, and what was refused of it.
type judged struct {
	acts.Verdict
	Refused []map[string]any `json:"refused"`
}

// give gives the answer.
func (in answering) give(d *acts.Decider, c *call, word string) (acts.Verdict, error) {
	if in.Where == "" {
		return d.Give(c.r.Context(), word, in.Refs, in.AnswerInput)
	}
	if len(in.Refs) > 0 {
		return acts.Verdict{}, &lockkeeper.InputError{Field: "where", Value: in.Where, Reason: "refs are given as well", Next: "give one of them"}
	}
	policy, err := progress.ParsePolicy(in.Where)
	if err != nil {
		return acts.Verdict{}, err
	}
	refs, err := d.Matching(c.r.Context(), policy)
	if err != nil {
		return acts.Verdict{}, err
	}
	if len(refs) == 0 {
		return d.State(c.r.Context()) // nothing that waits is such
	}
	return d.Give(c.r.Context(), word, refs, in.AnswerInput)
}

// flowAct is a route of an act on the documents of a flow. Where all was refused that is an
// error; where only some of it was, the answer says of what and why.
func flowAct[In any](pattern, summary string, do func(d *acts.Decider, c *call, in In) (acts.Verdict, error)) route {
	return act(api+pattern, operators, summary, func(s *Server, c *call, in In) (judged, error) {
		d, err := s.desk(c)
		if err != nil {
			return judged{}, err
		}
		v, err := do(d, c, in)
		if err != nil {
			return judged{}, err
		}
		if len(v.Done) == 0 && len(v.Refused) > 0 {
			return judged{}, &partsRefused{v.Refused}
		}
		return judged{v, listOf(v.Refused)}, nil
	}).of(typeOf[flowQuery]())
}

// desk opens the documents of the flow that an address names.
func (s *Server) desk(c *call) (*acts.Decider, error) {
	q, err := decodeQuery[flowQuery](c.r.URL.RawQuery)
	if err != nil {
		return nil, err
	}
	return acts.Open(c.r.Context(), s.opt.App, q.Flow, c.who.Actor())
}

package api

import (
	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/surface/acts"
)

// unitRoutes returns the routes for acts on a unit and its plan. Unit names contain slashes, so the act comes
// before the unit in the URL.
func unitRoutes() []route {
	return []route{
		unitAct("add-item", "Add an item that no phase came up with. It will be done.", func(d *acts.Decider, c *call, unit string, in struct {
			Description string     `json:"description"`
			Impact      flow.Level `json:"impact"`
			Effort      flow.Level `json:"effort"`
			Rationale   string     `json:"rationale,omitempty"`
		}) (acts.Verdict, error) {
			return d.AddItem(c.r.Context(), unit, flow.Ready{Description: in.Description, Impact: in.Impact, Effort: in.Effort, Rationale: in.Rationale})
		}),
		unitAct("reenable", "Let an item come up again that was rejected in an earlier run; undo takes that back.", func(d *acts.Decider, c *call, unit string, in struct {
			Item        string `json:"item,omitempty"` // id; empty: the description names the item
			Description string `json:"description,omitempty"`
			Undo        bool   `json:"undo,omitempty"`
		}) (v acts.Verdict, err error) {
			if in.Item != "" {
				if in.Description, err = d.Words(c.r.Context(), unit, in.Item); err != nil {
					return v, err
				}
			}
			return d.Reenable(c.r.Context(), unit, in.Description, in.Undo)
		}),
		unitAct("exclude", "Have the merge of a controller do without a screen.", func(d *acts.Decider, c *call, unit string, in struct {
			Screen string `json:"screen"`
			Why    string `json:"why"`
		}) (acts.Verdict, error) {
			return d.Exclude(c.r.Context(), unit, in.Screen, in.Why)
		}),
		unitAct("include", "Take that back.", func(d *acts.Decider, c *call, unit string, in struct {
			Screen string `json:"screen"`
		}) (acts.Verdict, error) {
			return d.Include(c.r.Context(), unit, in.Screen)
		}),
		unitAct("redo", "Have a phase of a unit, or of one of its batches, done anew, with all behind it.", func(d *acts.Decider, c *call, unit string, in struct {
			Phase string    `json:"phase"`
			Batch string    `json:"batch,omitempty"`
			Seen  acts.Seen `json:"seen,omitempty"`
		}) (acts.Verdict, error) {
			d = d.Seeing(in.Seen)
			if in.Batch != "" {
				return d.RedoBatch(c.r.Context(), unit, in.Batch, in.Phase)
			}
			return d.Redo(c.r.Context(), unit, in.Phase)
		}),
		unitAct("move", "Put an item into another batch.", func(d *acts.Decider, c *call, unit string, in struct {
			Item string    `json:"item"`
			To   string    `json:"to"` // batch
			Seen acts.Seen `json:"seen,omitempty"`
		}) (acts.Verdict, error) {
			return d.MoveItem(c.r.Context(), unit, in.Item, in.To, in.Seen)
		}),
		unitAct("split", "Take items out of a batch into a new one behind it.", func(d *acts.Decider, c *call, unit string, in struct {
			Batch string    `json:"batch"`
			Items []string  `json:"items"`
			Seen  acts.Seen `json:"seen,omitempty"`
		}) (acts.Verdict, error) {
			return d.Split(c.r.Context(), unit, in.Batch, in.Items, in.Seen)
		}),
		unitAct("merge", "Put all of one batch into another.", func(d *acts.Decider, c *call, unit string, in struct {
			Into string    `json:"into"`
			From string    `json:"from"`
			Seen acts.Seen `json:"seen,omitempty"`
		}) (acts.Verdict, error) {
			return d.Merge(c.r.Context(), unit, in.Into, in.From, in.Seen)
		}),
		unitAct("targets", "Say which files a batch may change.", func(d *acts.Decider, c *call, unit string, in struct {
			Batch string    `json:"batch"`
			Paths []string  `json:"paths"`
			Seen  acts.Seen `json:"seen,omitempty"`
		}) (acts.Verdict, error) {
			return d.SetTargets(c.r.Context(), unit, in.Batch, in.Paths, in.Seen)
		}),
		unitAct("retry", "Put what failed of a unit, or of a part of it, back into the queue.", func(d *acts.Decider, c *call, unit string, in struct {
			Part string `json:"part,omitempty"` // a batch, a screen or a topic; empty: all of it
			Note string `json:"note,omitempty"` // for the agent or person who redoes it
		}) (acts.Verdict, error) {
			name := unit
			if in.Part != "" {
				name += "/" + in.Part
			}
			return d.Retry(c.r.Context(), []string{name}, in.Note)
		}),
		act(api+"/units/undo/{unit...}", operators, "Put back what a batch of a unit changed.", undoBatch).of(typeOf[flowQuery]()),
	}
}

// unitAct returns the route of an act on a unit.
func unitAct[In any](name, summary string, do func(d *acts.Decider, c *call, unit string, in In) (acts.Verdict, error)) route {
	return flowAct("/units/"+name+"/{unit...}", summary, func(d *acts.Decider, c *call, in In) (acts.Verdict, error) {
		return do(d, c, c.r.PathValue("unit"), in)
	})
}

func undoBatch(s *Server, c *call, in struct {
	Batch string `json:"batch"`
}) (*acts.Undone, error) {
	if in.Batch == "" {
		return nil, &lockkeeper.InputError{Field: "batch", Reason: "it is missing", Next: "name the batch that is to be taken back"}
	}
	d, err := s.decider(c)
	if err != nil {
		return nil, err
	}
	return d.UndoBatch(c.r.Context(), c.r.PathValue("unit"), in.Batch, acts.Holding(s.opt.App, c.who.Actor()))
}

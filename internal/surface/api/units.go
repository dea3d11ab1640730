package api

import (
	"net/http"
	"reflect"

	"lockkeeper"
	"lockkeeper/internal/surface/acts"
)

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

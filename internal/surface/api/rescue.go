package api

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"

	"lockkeeper"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/view"
	"lockkeeper/rescue"
)

type rescuedPage struct {
	*view.Rescue
	Next string `json:"next,omitempty"` // after of the next page; empty: this is the last page
}

func listRescued(s *Server, c *call, q struct {
	paged
	After string `json:"after" doc:"The field next of the previous page."`
	Where string `json:"where" doc:"Conditions, such as batch=blog/*,reason=coverage."`
}) (rescuedPage, error) {
	all, err := s.opt.View.Rescue(c.r.Context())
	if err != nil {
		return rescuedPage{}, err
	}
	if w, err := acts.ParseWhere(q.Where, acts.RescueFields); err == nil && w.Names("now") {
		if err := s.opt.View.Fits(c.r.Context(), all.Entries); err != nil {
			return rescuedPage{}, err
		}
	}
	if all, err = all.Where(q.Where); err != nil {
		return rescuedPage{}, err
	}
	page := rescuedPage{Rescue: all}
	if q.After != "" { // ids sort by time
		all.Entries = slices.DeleteFunc(all.Entries, func(e view.RescueEntry) bool { return e.ID >= q.After })
	}
	if limit := *q.Limit; len(all.Entries) > limit {
		all.Entries = all.Entries[:limit]
		page.Next = all.Entries[limit-1].ID
	}
	return page, s.opt.View.Fits(c.r.Context(), all.Entries)
}

type dropped struct {
	Entry rescue.Entry `json:"entry"`
}

func dropRescued(s *Server, c *call, in struct {
	Confirm string `json:"confirm"`
}) (dropped, error) {
	id := c.r.PathValue("id")
	_, err := s.opt.App.Shelf().Get(id)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return dropped{}, &refusal{code: codeNotFound, reason: "no rescued change has the id " + id, next: "GET " + api + "/rescue lists them all"}
	case err != nil:
		return dropped{}, err
	case in.Confirm != id:
		return dropped{}, &lockkeeper.InputError{Field: "confirm", Reason: "a dropped change cannot be restored", Next: "send its id as confirm"}
	}
	e, err := acts.DropRescued(c.r.Context(), s.opt.App, id, c.who.Actor())
	return dropped{e}, err
}

// landedAgain is the response to landing a rescued change. Landing is nil if the tree already had
// the rescued content.
type landedAgain struct {
	Entry   rescue.Entry        `json:"entry"`
	Landing *lockkeeper.Landing `json:"landing"`
}

func landRescued(s *Server, c *call, in acts.Landing) (landedAgain, error) {
	e, l, err := acts.LandRescued(c.r.Context(), s.opt.App, c.r.PathValue("id"), in, c.changer(), acts.Holding(s.opt.App, c.who.Actor()))
	return landedAgain{e, l}, err
}

// landMany lands the changes that a caller chose and that apply.
func landMany(s *Server, c *call, in acts.Chosen) (acts.LandedMany, error) {
	list, err := s.opt.View.Chosen(c.r.Context(), in)
	if err == nil && in.Where != "" {
		list, err = c.changer().Own(c.r.Context(), list)
	}
	if err != nil {
		return acts.LandedMany{}, err
	}
	done := acts.LandMany(c.r.Context(), s.opt.App, list, c.changer(), acts.Holding(s.opt.App, c.who.Actor()))
	return done, done.Failed
}

type droppedMany struct {
	Dropped []rescue.Entry `json:"dropped"`
}

func dropMany(s *Server, c *call, in struct {
	acts.Chosen
	Confirm int `json:"confirm"`
}) (droppedMany, error) {
	list, err := s.opt.View.Chosen(c.r.Context(), in.Chosen)
	if err != nil {
		return droppedMany{}, err
	}
	if in.Confirm != len(list) {
		return droppedMany{}, &lockkeeper.InputError{Field: "confirm", Value: strconv.Itoa(in.Confirm), Reason: fmt.Sprintf("%d changes are chosen, and a dropped change cannot be restored", len(list)), Next: "send their number as confirm"}
	}
	gone, err := acts.DropMany(c.r.Context(), s.opt.App, list, c.who.Actor())
	return droppedMany{acts.OrEmpty(gone)}, err
}

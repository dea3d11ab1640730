package gate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"lockkeeper"
	"lockkeeper/rescue"
)

// violations lists the refusals in an error that may join several.
func violations(err error) (list []*lockkeeper.LockViolationError) {
	var v *lockkeeper.LockViolationError
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			list = append(list, violations(e)...)
		}
	} else if errors.As(err, &v) {
		list = append(list, v)
	}
	return list
}

// reasons is what is wrong with single paths, by path; none when something else is.
func (c *commit) reasons(err error) map[string]error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		why := map[string]error{}
		for _, e := range joined.Unwrap() {
			part := c.reasons(e)
			if len(part) == 0 {
				return nil
			}
			maps.Copy(why, part)
		}
		return why
	}
	var v *lockkeeper.LockViolationError
	var input *lockkeeper.InputError
	path := ""
	switch {
	case errors.As(err, &v):
		path = v.Path
	case errors.As(err, &input) && input.Field == "path":
		path = input.Value
	}
	for _, it := range c.items {
		if it.target == path || it.Path == path {
			return map[string]error{it.target: err}
		}
	}
	return nil
}

// sameBefore drops an entry if the same is on the shelf already, and returns the
// earlier one. The reasons of failures differ from one attempt to the next, and do
// not count.
func (g *Gate) sameBefore(ctx context.Context, e rescue.Entry) (rescue.Entry, error) {
	all, err := g.shelf.List(ctx)
	if err != nil {
		return e, err
	}
	for _, o := range all {
		if o.ID != e.ID && o.Kind == e.Kind && o.Path == e.Path && o.GrantID == e.GrantID && (o.Reason == e.Reason || e.Kind == rescue.Unlanded) &&
			o.Sum == e.Sum && o.Delete == e.Delete && o.Mode == e.Mode && o.Base == e.Base {
			return o, g.shelf.Drop(e.ID)
		}
	}
	return e, nil
}

// noteGap records a refused write. The same is told once an hour.
func (g *Gate) noteGap(ctx context.Context, grant *lockkeeper.Grant, path, check, reason string, e *rescue.Entry) (told bool, err error) {
	ctx = context.WithoutCancel(ctx)
	path = strings.ToValidUTF8(path, "\uFFFD") // the record is text; what is kept has its true name
	holder, err := g.holderOf(ctx, grant)
	if err != nil {
		return false, err
	}
	data, same := map[string]string{"path": path, "check": check}, ""
	if e != nil {
		data["rescue"], data["bytes"] = e.ID, strconv.FormatInt(e.Size, 10)
		same = fmt.Sprint(e.Sum, e.Delete, e.Mode, e.Base)
	}
	return g.locks.Note(ctx, fmt.Sprintf("gap %s %s %s %s", grant.ID, check, path, same),
		lockkeeper.Event{Kind: lockkeeper.EventGap, Actor: holder, GrantID: grant.ID, Holder: holder.Name, Reason: reason, Data: data})
}

// shelveBody keeps content that did not land. For a deletion or a mode the shelf
// keeps only what was wanted.
func (g *Gate) shelveBody(ctx context.Context, e rescue.Entry, content Body) (rescue.Entry, error) {
	if content == nil {
		return g.shelf.Put(ctx, e, nil)
	}
	body, err := content()
	if err != nil {
		return e, err
	}
	e, err = g.shelf.Put(ctx, e, body)
	return e, errors.Join(err, body.Close())
}

// holderOf is who asked: the holder of the grant if it is known, else whoever
// opened the gate.
func (g *Gate) holderOf(ctx context.Context, grant *lockkeeper.Grant) (actor lockkeeper.Actor, err error) {
	actor = g.opt.Actor
	if grant.ID == "" {
		return actor, nil
	}
	err = g.store.View(ctx, func(r lockkeeper.Reader) error {
		rec, err := r.Get(grant.ID)
		if rec != nil {
			actor = lockkeeper.Actor{Name: rec.Holder, Kind: lockkeeper.ActorHolder}
		}
		return err
	})
	return actor, err
}

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

// keepAll keeps what a refused commit was to write, all of it: its caller may have
// it nowhere else. It returns the refusal, with what went wrong on the way.
func (c *commit) keepAll(ctx context.Context, refusal error) error {
	why := c.reasons(refusal)
	if len(why) == 0 {
		return refusal
	}
	var told []error
	for _, it := range c.items {
		if reason := why[it.target]; reason != nil {
			told = append(told, c.keepOne(ctx, it, reason))
		} else if _, err := c.keep(ctx, it, "whole", "what was to land with it was refused"); err != nil {
			told = append(told, notKept(it.target, err))
		}
	}
	return errors.Join(told...)
}

// keepOne keeps one refused write, records it, and says in the refusal where it is.
func (c *commit) keepOne(ctx context.Context, it *item, refusal error) error {
	var v *lockkeeper.LockViolationError
	var input *lockkeeper.InputError
	check, reason, next := "target", refusal.Error(), new(string)
	switch {
	case errors.As(refusal, &v):
		check, reason, next = v.Check, v.Reason, &v.Next
	case errors.As(refusal, &input):
		reason, next = input.Reason, &input.Next
	}
	e, err := c.keep(ctx, it, check, reason)
	if err != nil {
		return errors.Join(refusal, notKept(it.target, err))
	}
	*next += "; what was to be written is kept: lockkeeper rescue show " + e.ID
	return refusal
}

func notKept(path string, err error) error {
	return fmt.Errorf("the refused content of %s could not be kept: %w", path, err)
}

// keep puts one refused write on the shelf and records it. The same again is neither
// kept nor told twice: an agent may try it again and again.
func (c *commit) keep(ctx context.Context, it *item, check, reason string) (e rescue.Entry, err error) {
	ctx = context.WithoutCancel(ctx)
	g := c.g
	holder, err := g.holderOf(ctx, c.grant)
	if err != nil {
		return e, err
	}
	e = rescue.Entry{Kind: rescue.Gap, Path: it.target, GrantID: c.grant.ID, Holder: holder.Name, Reason: check + ": " + reason, Delete: it.Delete, Mode: it.mode}
	switch {
	case it.Base != nil:
		e.Base = *it.Base
	case check == checkBase: // what was there when the grant was given: nobody knows
	default:
		if e.Base, err = g.observePath(it.target); err != nil && !errors.Is(err, errIrregular) && !isElsewhere(err) {
			return e, err
		}
	}
	if it.Mode != nil {
		e.Mode = *it.Mode
	}
	content := it.Body
	if it.from != "" {
		content = g.bodyOf(it.from)
	}
	if e, err = g.shelveBody(ctx, e, content); err != nil {
		return e, err
	}
	told, err := g.noteGap(ctx, c.grant, it.target, check, reason, &e)
	if err != nil || told {
		return e, err
	}
	return g.sameBefore(ctx, e)
}

// sameBefore drops an entry that is on the shelf already, and returns the earlier
// one. Somebody may have dropped that meanwhile.
func (g *Gate) sameBefore(ctx context.Context, e rescue.Entry) (rescue.Entry, error) {
	all, err := g.shelf.List(ctx)
	if err != nil {
		return e, err
	}
	for _, o := range all {
		if o.ID != e.ID && o.Kind == e.Kind && o.Path == e.Path && o.GrantID == e.GrantID && o.Reason == e.Reason &&
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

// shelveBody keeps refused content. Of a deletion, or a mode, there is nothing to
// keep but the wish.
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

package gate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"lockkeeper"
	"lockkeeper/rescue"
)

// A NotKeptError says that content did not land and is not on the rescue shelf either:
// only the caller has it.
type NotKeptError struct {
	Paths []string
	Err   error // why the shelf did not take it
}

func (e *NotKeptError) Error() string {
	paths, more := e.Paths, ""
	if len(paths) > 3 {
		paths, more = paths[:3], fmt.Sprintf(" and %d more", len(e.Paths)-3)
	}
	return fmt.Sprintf("the new content of %s%s was not kept: %v; next: fix the cause, then write again from your own copy of the content", strings.Join(paths, ", "), more, e.Err)
}

func (e *NotKeptError) Unwrap() error { return e.Err }

// refused handles a commit that was refused because of single paths. It keeps all the
// content of the commit, because the caller may have no other copy, and returns the
// refusal, which then says where the content is. It returns any other error unchanged.
func (c *commit) refused(ctx context.Context, err error) error {
	why := c.reasons(err)
	if len(why) == 0 || c.kept {
		return err
	}
	var told, failed []error
	var lost []string
	for _, it := range c.items {
		var err error
		if reason := why[it.target]; reason != nil {
			told = append(told, reason)
			err = c.keepOne(ctx, it, reason)
		} else {
			err = c.keep(ctx, it, "whole", "another change of the same commit was refused")
		}
		switch {
		case err == nil:
		case it.entry.ID == "" && !it.Stored:
			lost, failed = append(lost, it.target), append(failed, err)
		default:
			told = append(told, err)
		}
	}
	return errors.Join(append(told, c.notKept(lost, failed))...)
}

// failed handles a commit that failed for any reason. It keeps the content of the
// commit, unless recovery will complete the landing or roll it back. It returns the
// error, which then says where the content is, or that it was not kept.
func (c *commit) failed(ctx context.Context, err error) error {
	if len(c.reasons(err)) > 0 {
		return c.refused(ctx, err)
	}
	if c.pending || c.kept {
		return err
	}
	var ids []string
	var lost []string
	var failed []error
	for _, it := range c.items {
		if it.Stored || it.Body == nil {
			continue // its content is elsewhere, or in the tree
		}
		if it.entry.ID == "" {
			var kept error
			it.entry, kept = c.g.keepOnce(ctx, c.entryOf(ctx, it, rescue.Unlanded, "it failed to land: "+err.Error()), it.Body)
			if it.entry.ID == "" {
				lost, failed = append(lost, it.target), append(failed, kept)
				continue
			}
			err = errors.Join(err, kept)
		}
		ids = append(ids, it.entry.ID)
	}
	switch {
	case len(ids) == 1:
		err = fmt.Errorf("%w; the new content is kept: lockkeeper rescue show %s", err, ids[0])
	case len(ids) > 1:
		err = fmt.Errorf("%w; the new content of %d files is kept: lockkeeper rescue list", err, len(ids))
	}
	if lost := c.notKept(lost, failed); lost != nil {
		return errors.Join(err, lost)
	}
	return err
}

// keepRefused is keepOne for a change that Apply leaves out.
func (c *commit) keepRefused(ctx context.Context, it *item, refusal error) error {
	err := c.keepOne(ctx, it, refusal)
	if err != nil && it.entry.ID == "" && !it.Stored {
		err = &NotKeptError{Paths: []string{it.target}, Err: err}
	}
	return err
}

// notKept returns a *NotKeptError for paths whose content could not be kept. Without
// any, it notes that the content of the commit is safe.
func (c *commit) notKept(paths []string, errs []error) error {
	if len(paths) == 0 {
		c.kept = true
		return nil
	}
	return &NotKeptError{Paths: paths, Err: errs[0]}
}

// keepOne keeps one refused write, records it, and adds to the refusal where it is.
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
	if it.entry.ID != "" {
		return nil // kept, and said so, before
	}
	err := c.keep(ctx, it, check, reason)
	if it.entry.ID != "" {
		if *next != "" {
			*next += "; "
		}
		*next += "the new content is kept: lockkeeper rescue show " + it.entry.ID
	}
	return err
}

// keep puts one refused write on the shelf and records it. It neither keeps nor records
// an identical write twice, because agents retry. Content that is on the shelf stays
// there even if it cannot be recorded.
func (c *commit) keep(ctx context.Context, it *item, check, reason string) (err error) {
	if it.entry.ID != "" {
		return nil
	}
	g := c.g
	if it.Stored {
		_, err := g.noteGap(ctx, c.grant, it.target, check, reason, nil)
		return err
	}
	e := c.entryOf(ctx, it, rescue.Gap, check+": "+reason)
	if check == checkBase && it.Base == nil { // what was there when the grant was given is unknown
		e.Base = lockkeeper.Version{}
	}
	content := it.Body
	if it.from != "" {
		content = g.bodyOf(it.from)
	}
	if it.entry, err = g.shelveBody(context.WithoutCancel(ctx), e, content); err != nil {
		return err
	}
	told, err := g.noteGap(ctx, c.grant, it.target, check, reason, &it.entry)
	if err == nil && !told {
		it.entry, err = g.sameBefore(context.WithoutCancel(ctx), it.entry)
	}
	return err
}

// entryOf describes an item for the shelf. It leaves out a base that cannot be read,
// because keeping the content matters more.
func (c *commit) entryOf(ctx context.Context, it *item, kind, reason string) rescue.Entry {
	e := rescue.Entry{Kind: kind, Path: it.target, GrantID: c.grant.ID, Holder: c.g.opt.Actor.Name, Reason: reason, Delete: it.Delete, Mode: it.mode}
	if holder, err := c.g.holderOf(context.WithoutCancel(ctx), c.grant); err == nil {
		e.Holder = holder.Name
	}
	if it.Base != nil {
		e.Base = *it.Base
	} else if now, err := c.g.observePath(it.target); err == nil {
		e.Base = now
	}
	if it.Mode != nil {
		e.Mode = *it.Mode
	}
	return e
}

// keepOnce puts content on the shelf unless an equal entry is there already.
func (g *Gate) keepOnce(ctx context.Context, e rescue.Entry, content Body) (rescue.Entry, error) {
	ctx = context.WithoutCancel(ctx)
	e, err := g.shelveBody(ctx, e, content)
	if err != nil {
		return e, err
	}
	return g.sameBefore(ctx, e)
}

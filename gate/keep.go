package gate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"lockkeeper"
	"lockkeeper/rescue"
)

// A NotKeptError says that content which did not land is not on the rescue shelf
// either: only the caller has it.
type NotKeptError struct {
	Paths []string
	Err   error // why the shelf did not take it
}

func (e *NotKeptError) Error() string {
	paths, more := e.Paths, ""
	if len(paths) > 3 {
		paths, more = paths[:3], fmt.Sprintf(" and %d more", len(e.Paths)-3)
	}
	return fmt.Sprintf("nothing was kept of %s%s: %v; next: correct this, then write again from where you have the content", strings.Join(paths, ", "), more, e.Err)
}

func (e *NotKeptError) Unwrap() error { return e.Err }

// refused keeps what a commit was to write when it was refused because of single
// paths: all of it, because its caller may have it nowhere else. It returns the
// refusal, which then says where the content is. Any other error it returns as it is.
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
			err = c.keep(ctx, it, "whole", "what was to land with it was refused")
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

// failed keeps what a commit was to write when it failed for any reason, unless a
// recovery will bring its landing to an end. It returns the error, which then says
// where the content is, or that nothing was kept.
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
		err = fmt.Errorf("%w; what was to be written is kept: lockkeeper rescue show %s", err, ids[0])
	case len(ids) > 1:
		err = fmt.Errorf("%w; what was to be written is kept, %d files: lockkeeper rescue list", err, len(ids))
	}
	if lost := c.notKept(lost, failed); lost != nil {
		return errors.Join(err, lost)
	}
	return err
}

// keepRefused is keepOne for a change that is left out of a commit.
func (c *commit) keepRefused(ctx context.Context, it *item, refusal error) error {
	err := c.keepOne(ctx, it, refusal)
	if err != nil && it.entry.ID == "" && !it.Stored {
		err = &NotKeptError{Paths: []string{it.target}, Err: err}
	}
	return err
}

// notKept is the error about paths whose content could not be kept; nil for none.
// Without any, the content of the commit is safe.
func (c *commit) notKept(paths []string, errs []error) error {
	if len(paths) == 0 {
		c.kept = true
		return nil
	}
	return &NotKeptError{Paths: paths, Err: errs[0]}
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
	if it.entry.ID != "" {
		return nil // kept, and said so, before
	}
	err := c.keep(ctx, it, check, reason)
	if it.entry.ID != "" {
		*next += "; what was to be written is kept: lockkeeper rescue show " + it.entry.ID
	}
	return err
}

// keep puts one refused write on the shelf and records it. The same again is neither
// kept nor recorded twice: an agent may try it again and again. Content that is on
// the shelf is kept even if that cannot be recorded.
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
	if check == checkBase && it.Base == nil { // nobody knows what was there when the grant was given
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

// entryOf describes an item for the shelf. A base that cannot be read is left out:
// it is the content that must not be lost.
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

// keepOnce puts content on the shelf unless the same is there already.
func (g *Gate) keepOnce(ctx context.Context, e rescue.Entry, content Body) (rescue.Entry, error) {
	ctx = context.WithoutCancel(ctx)
	e, err := g.shelveBody(ctx, e, content)
	if err != nil {
		return e, err
	}
	return g.sameBefore(ctx, e)
}

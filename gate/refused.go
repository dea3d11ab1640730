package gate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/rescue"
	"lockkeeper/store"
)

// A NotKeptError says that content did not land and is not on the rescue shelf. Only the
// caller has it.
type NotKeptError struct {
	Paths []string
	Err   error // the error of the shelf
}

func (e *NotKeptError) Error() string {
	paths, more := e.Paths, ""
	if len(paths) > 3 {
		paths, more = paths[:3], fmt.Sprintf(" and %d more", len(e.Paths)-3)
	}
	return lockkeeper.JoinNext(fmt.Sprintf("the new content of %s%s was not kept: %v", strings.Join(paths, ", "), more, e.Err), e.NextStep())
}

// NextStep says how the caller can save the content.
func (e *NotKeptError) NextStep() string {
	return "fix the cause, then write again from your own copy of the content"
}

func (e *NotKeptError) Unwrap() error { return e.Err }

// refused handles a commit that was refused because of single paths. It keeps all the content of
// the commit, because the caller may have no other copy. It returns the refusal, which then says
// where the content is. It returns any other error unchanged.
func (c *commit) refused(ctx context.Context, err error) error {
	why := c.reasons(err)
	if len(why) == 0 || c.kept {
		return err
	}
	ctx = context.WithoutCancel(ctx)
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
			continue // the caller has the content, or it is in the tree
		}
		if it.entry.ID == "" {
			var kept error
			it.entry, kept = c.shelve(context.WithoutCancel(ctx), c.entryOf(it, rescue.Unlanded, "it failed to land: "+err.Error()), it.Body)
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

// keepRefused is keepOne for a change that Apply omits.
func (c *commit) keepRefused(ctx context.Context, it *item, refusal error) error {
	err := c.keepOne(ctx, it, refusal)
	if err != nil && it.entry.ID == "" && !it.Stored {
		err = &NotKeptError{Paths: []string{it.target}, Err: err}
	}
	return err
}

// notKept returns a *NotKeptError for paths whose content could not be kept. If there are
// none, it marks the content of the commit as safe.
func (c *commit) notKept(paths []string, errs []error) error {
	if len(paths) == 0 {
		c.kept = true
		return nil
	}
	return &NotKeptError{Paths: paths, Err: errs[0]}
}

// keepOne keeps one refused write, records it, and adds the rescue entry to the refusal.
func (c *commit) keepOne(ctx context.Context, it *item, refusal error) error {
	check, reason, next := "target", refusal.Error(), new(string)
	if v, ok := errors.AsType[*lockkeeper.LockViolationError](refusal); ok {
		check, reason, next = v.Check, v.Reason, &v.Next
	} else if input, ok := errors.AsType[*lockkeeper.InputError](refusal); ok {
		reason, next = input.Reason, &input.Next
	}
	if it.entry.ID != "" {
		return nil // the refusal already says that the content was kept
	}
	err := c.keep(context.WithoutCancel(ctx), it, check, reason)
	if it.entry.ID != "" {
		if *next != "" {
			*next += "; "
		}
		*next += "the new content is kept: lockkeeper rescue show " + it.entry.ID
	}
	return err
}

// keep puts one refused write on the shelf and records it. Agents retry, so it keeps and
// records an identical write only once. Content stays on the shelf even if keep cannot
// record it.
func (c *commit) keep(ctx context.Context, it *item, check, reason string) (err error) {
	if it.entry.ID != "" {
		return nil
	}
	g := c.g
	if it.Stored {
		return g.noteGap(ctx, c.grant, it.target, check, reason, nil)
	}
	e := c.entryOf(it, rescue.Gap, check+": "+reason)
	if check == checkBase && it.Base == nil { // the version at the time of the grant is unknown
		e.Base = lockkeeper.Version{}
	}
	content := it.Body
	if it.from != "" {
		content = g.bodyOf(it.from)
	}
	if it.entry, err = c.shelve(ctx, e, content); err != nil {
		return err
	}
	return g.noteGap(ctx, c.grant, it.target, check, reason, &it.entry)
}

// shelve keeps content for the holder of the commit. If the holder is unknown, only an entry of the same grant can be
// equal.
func (c *commit) shelve(ctx context.Context, e rescue.Entry, content Body) (rescue.Entry, error) {
	holder, known, err := c.g.holderOf(context.WithoutCancel(ctx), c.grant)
	if err == nil {
		e.Holder = holder.Name
	}
	return c.g.keepOnce(ctx, c.put, e, content, func(o rescue.Entry) bool {
		return (known || o.GrantID == e.GrantID) && !slices.Contains(c.answered, o.ID)
	})
}

// entryOf returns the rescue entry of an item. It omits a base that cannot be read, because
// keeping the content matters more.
func (c *commit) entryOf(it *item, kind, reason string) rescue.Entry {
	e := rescue.Entry{Kind: kind, Path: it.target, GrantID: c.grant.ID, Holder: c.g.opt.Actor.Name, Reason: reason, Delete: it.Delete, Mode: it.mode}
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

// Keep puts a change on the shelf that did not land, for a caller that cannot keep it itself. If its content is too
// large, Keep records the change without it. If the shelf has an equal entry, Keep returns that one.
func (g *Gate) Keep(ctx context.Context, e rescue.Entry, content Body) (rescue.Entry, error) {
	return g.keepOnce(ctx, g.shelf.PutOrNote, e, content, func(rescue.Entry) bool { return true })
}

// keepOnce keeps content with put, unless the shelf has an equal entry for which counts returns true. An entry that
// expires soon does not count, so that content is kept for long enough.
func (g *Gate) keepOnce(ctx context.Context, put put, e rescue.Entry, content Body, counts func(rescue.Entry) bool) (rescue.Entry, error) {
	e, err := put.shelveBody(ctx, e, content)
	if err != nil {
		return e, err
	}
	since := time.Now().Add(-g.opt.Keep / 2)
	return g.shelf.Merge(e, func(o rescue.Entry) bool { return o.At.After(since) && counts(o) })
}

// reasons returns the errors of single paths, by path; none if another error is among them.
func (c *commit) reasons(err error) map[string]error {
	why := map[string]error{}
	for _, part := range lockkeeper.Parts(err) {
		path := ""
		if v, ok := errors.AsType[*lockkeeper.LockViolationError](part); ok {
			path = v.Path
		} else if input, ok := errors.AsType[*lockkeeper.InputError](part); ok && input.Field == "path" {
			path = input.Value
		}
		i := slices.IndexFunc(c.items, func(it *item) bool { return it.target == path || it.Path == path })
		if i < 0 {
			return nil
		}
		why[c.items[i].target] = part
	}
	return why
}

// noteGap records a refused write, but one with the same entry, or one of the same grant without an entry, only once an
// hour.
func (g *Gate) noteGap(ctx context.Context, grant *lockkeeper.Grant, path, check, reason string, e *rescue.Entry) error {
	ctx = context.WithoutCancel(ctx)
	path = strings.ToValidUTF8(path, "\uFFFD") // the log is text; the rescue entry has the true name
	holder, _, err := g.holderOf(ctx, grant)
	if err != nil {
		return err
	}
	data, same := map[string]string{"path": path, "check": check}, grant.ID
	if e != nil {
		data["rescue"], data["bytes"] = e.ID, strconv.FormatInt(e.Size, 10)
		same = e.ID
	}
	_, err = g.locks.Note(ctx, fmt.Sprintf("gap %q %s %s %s", holder.Name, check, path, same),
		lockkeeper.Event{Kind: lockkeeper.EventGap, Actor: holder, GrantID: grant.ID, Holder: holder.Name, Reason: reason, Data: data})
	return err
}

// A put is a method of the shelf that stores content: Put or PutOrNote.
type put func(ctx context.Context, e rescue.Entry, content io.Reader) (rescue.Entry, error)

// shelveBody keeps content that did not land. A deletion or a mode change has none.
func (put put) shelveBody(ctx context.Context, e rescue.Entry, content Body) (rescue.Entry, error) {
	if content == nil {
		return put(ctx, e, nil)
	}
	body, err := content()
	if err != nil {
		return e, err
	}
	e, err = put(ctx, e, body)
	return e, errors.Join(err, body.Close())
}

// holderOf returns the holder of the grant. If it is unknown, it returns the actor of the gate, and known is false.
func (g *Gate) holderOf(ctx context.Context, grant *lockkeeper.Grant) (holder lockkeeper.Actor, known bool, err error) {
	if grant.ID == "" {
		return g.opt.Actor, false, nil
	}
	rec, err := store.Read(ctx, g.store, func(r store.Reader) (*store.Record, error) { return r.Get(grant.ID) })
	if rec == nil {
		return g.opt.Actor, false, err
	}
	return lockkeeper.Actor{Name: rec.Holder, Kind: lockkeeper.ActorHolder}, true, err
}

// Refuse keeps a change and records it as a gap, without trying to land it. An agent made
// it in its workspace without a lock. why is the error of Check, or another reason. If the
// content is too large, Refuse records the change without it. Canceling ctx stops Refuse,
// because the workspace still has the content.
//
// If the holder made the same change before, Refuse returns the entry of that gap and records
// nothing, unless the entry is among answered, the ids of entries that a person has answered.
func (g *Gate) Refuse(ctx context.Context, grant *lockkeeper.Grant, change Change, why error, answered ...string) (rescue.Entry, error) {
	return g.refuse(ctx, grant, change, why, g.shelf.PutOrNote, answered)
}

// RefuseAll is Refuse for many changes, which it records as one gap. The archive has their
// content, in the format of rescue.Archive. path is one of their paths.
func (g *Gate) RefuseAll(ctx context.Context, grant *lockkeeper.Grant, path string, archive Body, why error, answered ...string) (rescue.Entry, error) {
	return g.refuse(ctx, grant, Change{Path: path, Body: archive, Base: &lockkeeper.Version{}}, why, func(ctx context.Context, e rescue.Entry, content io.Reader) (rescue.Entry, error) {
		e.Kind = rescue.Archive
		return g.shelf.PutOrNote(ctx, e, content)
	}, answered)
}

func (g *Gate) refuse(ctx context.Context, grant *lockkeeper.Grant, change Change, why error, put put, answered []string) (rescue.Entry, error) {
	c := g.newCommit(grant)
	c.put, c.answered = put, answered
	target, err := g.resolve(c.checker, change.Path)
	if err != nil { // an invalid path: the content is kept under the given name
		target = change.Path
	}
	it := &item{Change: change, target: target, mode: 0o644}
	check, reason := "target", why.Error()
	if v, ok := errors.AsType[*lockkeeper.LockViolationError](why); ok {
		check, reason = v.Check, v.Reason
	}
	err = c.keep(ctx, it, check, reason)
	return it.entry, err
}

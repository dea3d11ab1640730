package gate

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
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

// recordGaps keeps what refused writes were to write, and records each of them. It
// returns the refusal itself, with what went wrong on the way.
func (g *Gate) recordGaps(ctx context.Context, grant *lockkeeper.Grant, items []*item, refusal error) error {
	ctx = context.WithoutCancel(ctx)
	for _, v := range violations(refusal) {
		for _, it := range items {
			if it.target != v.Path {
				continue
			}
			if err := g.recordGap(ctx, grant, it, v); err != nil {
				refusal = errors.Join(refusal, fmt.Errorf("the refused content of %s could not be kept: %w", v.Path, err))
			}
		}
	}
	return refusal
}

// recordGap keeps one refused write, once for the same content.
func (g *Gate) recordGap(ctx context.Context, grant *lockkeeper.Grant, it *item, v *lockkeeper.LockViolationError) error {
	sum, err := sumOf(it.Body)
	if err != nil {
		return err
	}
	holder, err := g.holderOf(ctx, grant)
	if err != nil {
		return err
	}
	e := rescue.Entry{Kind: rescue.Gap, Path: it.target, GrantID: grant.ID, Holder: holder.Name, Reason: v.Check + ": " + v.Reason, Delete: it.Delete, Mode: it.mode}
	if e.Base, err = g.observePath(it.target); err != nil && !errors.Is(err, errIrregular) && !isElsewhere(err) {
		return err
	}
	if it.Mode != nil {
		e.Mode = *it.Mode
	}
	if e, err = g.shelveBody(ctx, e, it.Body); err != nil {
		return err
	}
	key := fmt.Sprintf("gap %s %s %s %x", grant.ID, v.Check, it.target, sum[:8])
	told, err := g.locks.Note(ctx, key, lockkeeper.Event{Kind: lockkeeper.EventGap, Actor: holder, GrantID: grant.ID, Holder: holder.Name, Reason: v.Reason,
		Data: map[string]string{"path": it.target, "check": v.Check, "rescue": e.ID, "bytes": strconv.FormatInt(e.Size, 10)}})
	if err != nil || told {
		return err
	}
	return g.shelf.Drop(e.ID) // the same has been kept and told
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

func sumOf(content Body) (sum [sha256.Size]byte, err error) {
	if content == nil {
		return sum, nil
	}
	body, err := content()
	if err != nil {
		return sum, err
	}
	h := sha256.New()
	_, err = io.Copy(h, body)
	h.Sum(sum[:0])
	return sum, errors.Join(err, body.Close())
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

// keep puts what entry n of a stage holds on the rescue shelf: an edit of somebody
// else, or an original, for which there is no place in the tree.
func (p *passage) keep(n int, path, reason string) error {
	g := p.g
	e := rescue.Entry{Kind: rescue.Displaced, Path: path, GrantID: p.l.GrantID, Holder: p.l.Holder, Reason: reason}
	own, staged := p.s.at(n)
	st, err := g.disk.Lstat(own, staged)
	if err != nil {
		return p.orFenced(err)
	}
	e.Mode = st.Mode.Perm()
	if !st.Mode.IsRegular() {
		return p.keepWhole(n, e)
	}
	f, err := g.disk.OpenFile(own, staged)
	if err != nil {
		return p.orFenced(err)
	}
	defer f.Close()
	if e.Base, err = g.observePath(path); err != nil && !errors.Is(err, errIrregular) && !isElsewhere(err) {
		return err
	}
	return g.shelve(e, f)
}

// shelve puts content on the rescue shelf, whatever the caller's context says: it
// has no other place any more.
func (g *Gate) shelve(e rescue.Entry, content io.Reader) error {
	_, err := g.shelf.Put(context.Background(), e, content)
	return err
}

// keepWhole moves a directory, or something odd, aside as it is, and leaves a note
// on the shelf that says where.
func (p *passage) keepWhole(n int, e rescue.Entry) error {
	day, err := p.g.subdir(p.g.kept, keptDay(p.l))
	if err != nil {
		return err
	}
	e.Kind = rescue.Whole
	name := p.l.Commit + ".displaced." + newCommit()
	own, staged := p.s.at(n)
	if err := errors.Join(p.g.disk.Move(own, staged, day, name), p.g.disk.Close(day)); err != nil {
		return err
	}
	return p.g.shelve(e, strings.NewReader("kept as it was in "+stateDir+"/kept/"+keptDay(p.l)+"/"+name+"\n"))
}

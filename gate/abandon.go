package gate

import (
	"context"
	"errors"
	"fmt"

	"lockkeeper"
)

// Abandon ends a landing whose files will not come back, so that its paths can be
// locked again. It counts as undone. If the files are on another disk, nobody knows how
// far it got there. If directories of this tree are away, the landing is rolled back
// without them, and the originals of their files are kept on the rescue shelf. Only a
// person may say that a disk or a directory is lost.
func (g *Gate) Abandon(ctx context.Context, seq uint64, by lockkeeper.Actor, reason string) (*lockkeeper.Landing, error) {
	l, err := g.Landing(ctx, seq)
	if err != nil {
		return nil, err
	}
	refuse := func(reason, next string) error {
		return &lockkeeper.RefusedError{Act: "giving up landing " + itoa(seq), Reason: reason, Next: next}
	}
	switch {
	case by.Kind != lockkeeper.ActorPerson && by.Kind != lockkeeper.ActorAdmin:
		return nil, refuse(fmt.Sprintf("only a person or an administrator may, not one of kind %q", by.Kind), "ask a person")
	case reason == "":
		return nil, &lockkeeper.InputError{Field: "reason", Reason: "empty", Next: "say why, for the audit trail"}
	case l.State != lockkeeper.Decided:
		return nil, refuse("it has ended: "+l.State.String(), "nothing is left to do")
	case g.isHere(l):
		return l, g.abandonHere(ctx, l, "given up by "+by.Name+": "+reason)
	}
	mine := lockkeeper.Ending{Seq: seq, Taker: newID()}
	if _, err := g.locks.TakeLanding(ctx, mine); err != nil {
		return nil, err
	}
	ended, err := g.locks.EndLanding(ctx, mine, lockkeeper.Undone, "given up by "+by.Name+", with "+siteOf(l)+": "+reason)
	if err == nil && !ended {
		err = refuse("somebody else is bringing it to its end", "lockkeeper gate recover, there")
	}
	return l, err
}

// abandonHere ends a landing of this tree, whose recovery has to be waiting for a
// directory.
func (g *Gate) abandonHere(ctx context.Context, l *lockkeeper.Landing, givenUp string) error {
	busy, err := g.isBusy(l)
	if err == nil && (busy || g.isFlying(l.GrantID)) {
		err = &lockkeeper.RefusedError{Act: "giving up landing " + itoa(l.Seq), Reason: "its writer is still at work", Next: "try again when it is done"}
	}
	if err != nil {
		return err
	}
	state, err := g.resume(ctx, l, "")
	if errors.As(err, new(*awayError)) {
		_, err = g.resume(ctx, l, givenUp)
		return err
	}
	if err == nil {
		err = &lockkeeper.RefusedError{Act: "giving up landing " + itoa(l.Seq), Reason: "recovery has just ended it: " + state.String(), Next: "nothing is left to do"}
	}
	return err
}

package gate

import (
	"context"
	"fmt"

	"lockkeeper"
)

// Abandon ends a landing whose files are on a disk that will not come back, so that
// its paths can be locked again. It counts as taken back: how far it got there nobody
// can know. Only a person may say that a disk is lost.
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
		return nil, refuse("its files are here", "lockkeeper gate recover")
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

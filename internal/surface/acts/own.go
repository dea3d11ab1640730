package acts

import (
	"context"
	"time"

	"lockkeeper"
	"lockkeeper/rescue"
)

// A Changer is the caller that undoes a landing or lands a kept change. People may change what anyone
// wrote, and agents only what they wrote themselves.
type Changer struct {
	lockkeeper.Actor

	// Wrote reports whether an agent wrote something: under this grant, with this holder, at this time.
	// If it is nil, an agent wrote nothing.
	Wrote func(ctx context.Context, grant, holder string, at time.Time) (bool, error)
}

// mayChange returns an error for an agent that did not write the content itself.
func (c Changer) mayChange(ctx context.Context, act, grant, holder string, at time.Time) error {
	if c.Kind != lockkeeper.ActorAgent {
		return nil
	}
	if c.Wrote != nil {
		if wrote, err := c.Wrote(ctx, grant, holder, at); wrote || err != nil {
			return err
		}
	}
	return &lockkeeper.RefusedError{Act: act, Reason: "nothing shows that " + c.Name + " wrote it: it is from " + holder + ", and agents change only what they wrote",
		Next: "ask a person to run it in their own terminal"}
}

// mayLand returns an error for an agent that did not write a kept change itself.
func (c Changer) mayLand(ctx context.Context, e rescue.Entry) error {
	if e.Kind == rescue.Unlanded { // the work of a batch, about which people decide
		c.Wrote = nil
	}
	return c.mayChange(ctx, "landing of rescued "+e.ID, e.GrantID, e.Holder, e.At)
}

// Own returns the kept changes that the caller may land, so that conditions of an agent tell it
// nothing about the work of others. For people these are all.
func (c Changer) Own(ctx context.Context, list []rescue.Entry) (own []rescue.Entry, err error) {
	for _, e := range list {
		switch err := c.mayLand(ctx, e); {
		case err == nil:
			own = append(own, e)
		case lockkeeper.CodeOf(err) != lockkeeper.CodeRefused:
			return nil, err
		}
	}
	return own, nil
}

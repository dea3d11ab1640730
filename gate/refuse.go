package gate

import (
	"context"
	"errors"

	"lockkeeper"
	"lockkeeper/rescue"
)

// Refuse records a change as a gap and keeps it, without an attempt to land it: what an
// agent made in its copy of the tree and has no lock for. Why is what Check said of its
// path, or what else speaks against it.
func (g *Gate) Refuse(ctx context.Context, grant *lockkeeper.Grant, change Change, why error) (rescue.Entry, error) {
	c := g.newCommit(grant)
	target, err := g.resolve(c.look, change.Path)
	if err != nil { // it is kept under the name that it was given
		target = change.Path
	}
	it := &item{Change: change, target: target, mode: 0o644}
	check, reason := "target", why.Error()
	var v *lockkeeper.LockViolationError
	if errors.As(why, &v) {
		check, reason = v.Check, v.Reason
	}
	err = c.keep(ctx, it, check, reason)
	return it.entry, err
}

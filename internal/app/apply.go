package app

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"lockkeeper"
	"lockkeeper/gate"
)

// Outcome is what became of one wanted change.
type Outcome struct {
	Path    string
	Landed  bool               // false without a refusal: it was so already
	Version lockkeeper.Version // that landed
	Refusal error
}

// Applied is what became of changes that were to land together.
type Applied struct {
	Landing *lockkeeper.Landing // nil: nothing landed
	Files   []Outcome           // by path
}

// Apply lands changes as one unit, under a grant of this user if one is named.
// What the gate refuses is left out, and kept by the gate, unless they are to
// land as a whole: then one refusal refuses them all. The paths of changes are
// from the root, as File makes them.
func (a *App) Apply(ctx context.Context, grantID string, changes []gate.Change, whole bool) (*Applied, error) {
	grant, err := a.GrantOf(grantID)
	if err != nil {
		return nil, err
	}
	g, err := a.Gate()
	if err != nil {
		return nil, err
	}
	done := &Applied{}
	for len(changes) > 0 {
		l, err := g.Commit(ctx, grant, changes)
		if err == nil {
			done.add(l, changes)
			break
		}
		refused := refusals(err)
		if whole || refused == nil {
			return nil, err
		}
		left := slices.DeleteFunc(slices.Clone(changes), func(c gate.Change) bool { return refused[c.Path] != nil })
		if len(left) == len(changes) {
			return nil, err
		}
		for _, c := range changes {
			if why := refused[c.Path]; why != nil {
				done.Files = append(done.Files, Outcome{Path: c.Path, Refusal: why})
			}
		}
		changes = left
	}
	slices.SortFunc(done.Files, func(a, b Outcome) int { return cmp.Compare(a.Path, b.Path) })
	return done, nil
}

// add notes changes that were committed.
func (d *Applied) add(l *lockkeeper.Landing, changes []gate.Change) {
	d.Landing = l
	for i, c := range changes {
		o := Outcome{Path: c.Path}
		if l != nil {
			o.Version = l.Changes[i].New
			o.Landed = l.Changes[i].Old != o.Version
		}
		d.Files = append(d.Files, o)
	}
}

// refusals is why changes of single paths did not get through; nil when
// something else went wrong, too.
func refusals(err error) map[string]error {
	refused := map[string]error{}
	for _, part := range Parts(err) {
		var violation *lockkeeper.LockViolationError
		var input *lockkeeper.InputError
		switch {
		case errors.As(part, &violation):
			refused[violation.Path] = part
		case errors.As(part, &input) && input.Field == "path":
			refused[input.Value] = part
		default:
			return nil
		}
	}
	return refused
}

// Parts is the errors that were joined to one.
func Parts(err error) (parts []error) {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	for _, e := range joined.Unwrap() {
		parts = append(parts, Parts(e)...)
	}
	return parts
}

package cli

import (
	"context"

	"lockkeeper"
	"lockkeeper/internal/dossier"
)

// changeOf is the change that a gap is about, as it is kept; empty: nothing is, or it is
// no text.
func (d *decider) changeOf(ctx context.Context, r dossier.Ref) (string, error) {
	u, err := d.book.Unit(ctx, r.Unit)
	if err != nil {
		return "", err
	}
	b, known := u.Batch(r.Batch)
	if !known {
		return "", nil // which the answer itself says better
	}
	for _, g := range b.Gaps() {
		if g.Number != r.Gap || g.Rescue == "" {
			continue
		}
		e, err := d.a.Shelf().Get(g.Rescue)
		if lockkeeper.CodeOf(err) == lockkeeper.CodeInput {
			return "", nil // it was dropped since
		}
		if err != nil {
			return "", err
		}
		text, _, err := difference(d.a, e)
		return text, err
	}
	return "", nil
}

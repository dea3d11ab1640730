package gate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"lockkeeper"
)

// CheckCopy reports where this copy of the tree is behind what others have landed in
// theirs: a *lockkeeper.BehindError for each path, joined. What was landed here, or
// never through a gate, is not its matter.
func (g *Gate) CheckCopy(ctx context.Context, paths ...string) error {
	landed := map[string]*lockkeeper.Landing{}
	err := g.store.View(ctx, func(r lockkeeper.Reader) error {
		left, err := r.Landed("", paths...)
		if err != nil {
			return err
		}
		for path, l := range left {
			found, err := r.Landings(lockkeeper.LandingQuery{Seq: l.Seq})
			if err != nil {
				return err
			}
			if len(found) == 1 && !g.isHere(found[0]) {
				landed[path] = found[0]
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	var behind []error
	for _, path := range paths {
		l := landed[path]
		if l == nil {
			continue
		}
		have, err := g.observePath(path)
		if err != nil && !errors.Is(err, errIrregular) && !isElsewhere(err) {
			return err
		}
		if want := leftBy(l, path); err != nil || have != want {
			_, site, _ := strings.Cut(l.Site, " ")
			behind = append(behind, &lockkeeper.BehindError{Path: path, Landing: l.Seq, Holder: l.Holder, Site: site, At: l.At,
				Fact: fmt.Sprintf("it holds %s, landed was %s", brief(have), brief(want))})
		}
	}
	return errors.Join(behind...)
}

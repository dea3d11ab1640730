package gate

import (
	"errors"
	"fmt"

	"lockkeeper"
)

// inspect finds out which changes are done, by what the stage holds, and whether
// the others can be.
func (p *passage) inspect(survived bool) error {
	var blocked error
	for n, c := range p.l.Changes {
		if c.Old == c.New {
			continue
		}
		staged, err := p.g.observe(p.s.at(n))
		if err != nil && !errors.Is(err, errIrregular) {
			return err
		}
		now, nowErr := p.g.observePath(c.Path)
		if nowErr != nil && !errors.Is(nowErr, errIrregular) && !isElsewhere(nowErr) {
			return nowErr
		}
		if err := p.judge(n, c, staged, err, now, nowErr, survived); err != nil && blocked == nil {
			blocked = err
		}
	}
	return blocked
}

// judge decides for one change. What was displaced and is not what was expected
// belongs to somebody else: then the change is done and has to be taken back.
func (p *passage) judge(n int, c lockkeeper.Alteration, staged lockkeeper.Version, odd error, now lockkeeper.Version, nowOdd error, survived bool) error {
	synced := len(p.l.Changes) > 1 || p.l.Draft != "" // the names in the stage, before it was decided
	switch {
	case c.New.Exists() && staged == c.New && odd == nil: // not done
	case !c.Old.Exists() && !staged.Exists() && odd == nil && (survived && synced || now == c.New): // created
		p.done[n] = true
		return nil
	case c.Old.Exists() && staged == c.Old && odd == nil: // displaced as expected
		p.done[n] = true
		return nil
	case !c.New.Exists() && !staged.Exists() && odd == nil: // not deleted by us
		if !now.Exists() && nowOdd == nil {
			p.bare[n] = true // somebody else did
			return nil
		}
	case !staged.Exists() && odd == nil:
		if now == c.New && nowOdd == nil {
			p.bare[n] = true // its original is lost, it is not
			return nil
		}
		return &obstacle{c.Path, "its new content was lost in a crash before it was in place"}
	default:
		p.done[n] = true
		return &obstacle{c.Path, "an edit of somebody else was displaced"}
	}
	if now != c.Old || nowOdd != nil {
		return &obstacle{c.Path, fmt.Sprintf("it was changed by somebody else: expected %s, found %s", brief(c.Old), brief(now))}
	}
	return nil
}

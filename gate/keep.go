package gate

import (
	"errors"
	"io/fs"
	"time"
)

// forget drops originals and rescued content that are older than they are to be
// kept.
func (g *Gate) forget(now time.Time) (dropped int, err error) {
	before := now.Add(-g.opt.Keep)
	days, err := g.disk.List(g.kept)
	if err != nil {
		return 0, err
	}
	for _, name := range days {
		day, err := time.Parse(time.DateOnly, name)
		if err != nil || !day.AddDate(0, 0, 1).Before(before) {
			continue
		}
		dir, err := g.disk.OpenDir(g.kept, name)
		if err != nil {
			return dropped, err
		}
		if err := errors.Join(g.empty(dir), dir.Close(), g.disk.RemoveDir(g.kept, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return dropped, err
		}
		dropped++
	}
	pieces, err := g.shelf.Prune(before)
	return dropped + pieces, err
}

package gate

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// HasLeft reports whether Recover may have something to do in a root: writes are on
// their way, or were when somebody crashed, or something is kept for longer than it
// is to be. It looks at names alone.
func HasLeft(root string, keep time.Duration) (bool, error) {
	list := func(name string) ([]fs.DirEntry, error) {
		entries, err := os.ReadDir(filepath.Join(root, stateDir, name))
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return entries, err
	}
	for _, name := range []string{stagesDir, recoversDir} {
		entries, err := list(name)
		if err != nil || slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return !isSpare(e.Name()) }) {
			return true, err
		}
	}
	before := time.Now().UTC().Add(-keep)
	for _, kept := range []struct {
		name, form string
		since      time.Time // the oldest that stays
	}{{keptDir, time.DateOnly, before.AddDate(0, 0, -1)}, {shelfDir, "20060102T150405", before}} {
		entries, err := list(kept.name)
		if err != nil {
			return true, err
		}
		for _, e := range entries {
			if at := e.Name()[:min(len(e.Name()), len(kept.form))]; at >= "0" { // the first that is no temporary one is the oldest
				if at < kept.since.Format(kept.form) {
					return true, nil
				}
				break
			}
		}
	}
	return false, nil
}

package gate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"lockkeeper"
)

// Undo puts back what a landing changed, through the same gate: the grant has to
// hold its paths for writing. It refuses as a whole when anything has changed since,
// and says which later landings stand on this one.
func (g *Gate) Undo(ctx context.Context, grant *lockkeeper.Grant, seq uint64) (*lockkeeper.Landing, error) {
	l, err := g.Landing(ctx, seq)
	if err != nil {
		return nil, err
	}
	refuse := func(reason, next string) error {
		return &lockkeeper.RefusedError{Act: "undo of landing " + itoa(seq), Reason: reason, Next: next}
	}
	switch {
	case l.State == lockkeeper.Undone:
		return nil, refuse("it was taken back already", "")
	case l.State == lockkeeper.Decided && !g.isDone(l):
		return nil, refuse("it is not known to be done yet", "lockkeeper gate recover")
	case !g.isHere(l):
		return nil, refuse("its files are on "+siteOf(l), "undo it there")
	case l.Draft != "":
		return nil, refuse("it replaced a whole directory", "the directory as it was is in "+stateDir+"/kept/"+keptDay(l)+"/"+l.Commit)
	}
	changes, err := g.reversal(l)
	if err != nil {
		return nil, err
	}
	if grant == nil {
		grant = &lockkeeper.Grant{}
	}
	c := &commit{g: g, grant: grant, landing: &lockkeeper.Landing{Site: g.site, Holder: g.opt.Actor.Name, Undoes: seq}}
	c.landing.Clears = slices.Clone(l.Made)
	slices.Reverse(c.landing.Clears)
	back, err := c.run(ctx, changes)
	if err == nil {
		return back, nil
	}
	for _, v := range violations(err) {
		if v.Check == checkBase {
			return nil, refuse(g.standingOn(ctx, l, err), "undo the later ones first, or put the files back by hand")
		}
	}
	return nil, err
}

// isDone reports whether this process has done a landing that is not marked yet.
func (g *Gate) isDone(l *lockkeeper.Landing) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Contains(g.done[l.GrantID], l.Seq)
}

// reversal makes the changes that take a landing back.
func (g *Gate) reversal(l *lockkeeper.Landing) ([]Change, error) {
	kept, err := g.openKept(l)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if kept != nil {
		if err := kept.Close(); err != nil {
			return nil, err
		}
	}
	var changes []Change
	for n, a := range l.Changes {
		if a.Old == a.New {
			continue
		}
		base := a.New
		change := Change{Path: a.Path, Base: &base, Delete: true}
		if a.Old.Exists() {
			mode := a.Old.Mode
			change.Mode, change.Delete = &mode, false
			change.Body = func() (io.ReadCloser, error) { return g.openOriginal(l, n) }
			if kept == nil {
				return nil, &lockkeeper.RefusedError{Act: "undo of landing " + itoa(l.Seq), Reason: "the original of " + a.Path + " is not kept any more",
					Next: "take it from your version control"}
			}
		}
		changes = append(changes, change)
	}
	return changes, nil
}

// openOriginal opens what a change of a landing displaced.
func (g *Gate) openOriginal(l *lockkeeper.Landing, n int) (*os.File, error) {
	kept, err := g.openKept(l)
	if err != nil {
		return nil, err
	}
	f, err := g.disk.OpenFile(kept, entry(n))
	return f, errors.Join(err, kept.Close())
}

// standingOn says what has happened since to the paths of a landing.
func (g *Gate) standingOn(ctx context.Context, l *lockkeeper.Landing, refusal error) string {
	var told []string
	for _, v := range violations(refusal) {
		if v.Check != checkBase {
			continue
		}
		later, err := g.landings(ctx, lockkeeper.LandingQuery{Path: v.Path, After: l.Seq, Limit: 10})
		by := "outside of the gate"
		if err != nil {
			by = "and by whom could not be found out: " + err.Error()
		}
		var seqs []string
		for _, s := range later {
			if s.State != lockkeeper.Undone {
				seqs = append(seqs, fmt.Sprintf("%d of %s", s.Seq, s.Holder))
			}
		}
		if len(seqs) > 0 {
			by = "by landing " + strings.Join(seqs, ", ")
		}
		told = append(told, fmt.Sprintf("%s was changed since, %s", v.Path, by))
	}
	return strings.Join(told, "; ")
}

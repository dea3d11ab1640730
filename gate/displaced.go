package gate

import (
	"context"
	"errors"
	"io"
	"strings"

	"lockkeeper"
	"lockkeeper/rescue"
)

// keep puts what entry n of a stage holds on the rescue shelf: an edit of somebody
// else, or an original, for which there is no place in the tree.
func (p *passage) keep(n int, path, reason string) error {
	g := p.g
	e := rescue.Entry{Kind: rescue.Displaced, Path: path, GrantID: p.l.GrantID, Holder: p.l.Holder, Reason: reason}
	own, staged := p.s.at(n)
	st, err := g.disk.Lstat(own, staged)
	if err != nil {
		return p.orFenced(err)
	}
	e.Mode = st.Mode.Perm()
	if !st.Mode.IsRegular() {
		return p.keepWhole(n, e)
	}
	f, err := g.disk.OpenFile(own, staged)
	if err != nil {
		return p.orFenced(err)
	}
	defer f.Close()
	if e.Base, err = g.observePath(path); err != nil && !errors.Is(err, errIrregular) && !isElsewhere(err) {
		return err
	}
	return g.shelve(e, f)
}

// shelve puts content on the rescue shelf, whatever the caller's context says: it
// has no other place any more.
func (g *Gate) shelve(e rescue.Entry, content io.Reader) error {
	_, err := g.shelf.Put(context.Background(), e, content)
	return err
}

// keepWhole moves a directory, or something odd, aside as it is, and leaves a note
// on the shelf that says where.
func (p *passage) keepWhole(n int, e rescue.Entry) error {
	day, err := p.g.subdir(p.g.kept, keptDay(p.l))
	if err != nil {
		return err
	}
	e.Kind = rescue.Whole
	name := p.l.Commit + ".displaced." + newID()
	own, staged := p.s.at(n)
	if err := errors.Join(p.g.disk.Move(own, staged, day, name), p.g.disk.Close(day)); err != nil {
		return err
	}
	return p.g.shelve(e, strings.NewReader("kept as it was in "+stateDir+"/kept/"+keptDay(p.l)+"/"+name+"\n"))
}

// shelveWanted keeps the new content of a landing that was rolled back and whose
// caller does not have it: a recovery has none, and a replaced directory was written
// in the tree. All of it is in the stage again.
func (p *passage) shelveWanted(cause error) error {
	for n, c := range p.l.Changes {
		if c.Old == c.New || !c.New.Exists() {
			continue
		}
		own, staged := p.s.at(n)
		if now, err := p.g.observe(own, staged); err != nil || now != c.New {
			if err != nil && !errors.Is(err, errIrregular) {
				return err
			}
			continue // somebody has written on top of it, and that is kept
		}
		e := rescue.Entry{Kind: rescue.Gap, Path: c.Path, GrantID: p.l.GrantID, Holder: p.l.Holder, Base: c.Old, Mode: c.New.Mode,
			Reason: "landing " + itoa(p.l.Seq) + " was rolled back: " + cause.Error()}
		if c.New.Kind == lockkeeper.Dir {
			if err := p.keepWhole(n, e); err != nil {
				return err
			}
			continue
		}
		f, err := p.g.disk.OpenFile(own, staged)
		if err != nil {
			return p.orFenced(err)
		}
		if err := errors.Join(p.g.shelve(e, f), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

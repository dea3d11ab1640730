package gate

import (
	"context"
	"io"
	"io/fs"

	"lockkeeper"
)

// Content opens the content that change n of a landing replaced or, with after, the content that it
// wrote. It returns fs.ErrNotExist if the content is not kept. What a landing wrote is in the tree, or is
// the original of a later landing.
func (g *Gate) Content(ctx context.Context, l *lockkeeper.Landing, n int, after bool) (io.ReadCloser, error) {
	c := l.Changes[n]
	if c.Old.Kind == lockkeeper.Dir || c.New.Kind == lockkeeper.Dir || !g.isHere(l) {
		return nil, fs.ErrNotExist
	}
	if !after {
		return g.original(l, n)
	}
	if now, err := g.observePath(c.Path); err == nil && now.Sum == c.New.Sum && now.Kind == c.New.Kind {
		return g.bodyOf(c.Path)()
	}
	later, err := g.since(ctx, l, c.Path)
	if err != nil {
		return nil, err
	}
	for _, s := range later {
		for i, o := range s.Changes {
			if o.Path == c.Path && o.Old.Sum == c.New.Sum {
				return g.original(s, i)
			}
		}
	}
	return nil, fs.ErrNotExist
}

// original opens what change n of a landing replaced.
func (g *Gate) original(l *lockkeeper.Landing, n int) (io.ReadCloser, error) {
	kept, err := g.isKept(l)
	if err != nil {
		return nil, err
	}
	if !kept || l.Changes[n].Old == l.Changes[n].New {
		return nil, fs.ErrNotExist
	}
	return g.disk.OpenFile(g.kept, originalAt(l, n))
}

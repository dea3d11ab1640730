package gate

import (
	"errors"
	"io/fs"
	"strings"
)

// sparePrefix begins the name of an empty stage that its maker uses again, because
// a disk takes longer to make a directory than to rename one.
const sparePrefix = "spare."

func isSpare(stage string) bool { return strings.HasPrefix(stage, sparePrefix) }

// spare keeps an emptied stage of a writer for its next commit. Whoever was late
// with the last one looks for its name, which is gone, and for entries of its own.
// Where that fails, an empty directory is left to the next recovery.
func (s *stage) spare() {
	g := s.g
	name := sparePrefix + newID()
	if g.disk.Move(s.in, s.name, s.in, name) != nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.spares = append(g.spares, &stage{g: g, in: s.in, name: name, dir: s.dir})
	s.dir = nil // it stays open, and locked
}

// takeSpare gives a spare stage a name; nil when there is none.
func (g *Gate) takeSpare(name string) (*stage, error) {
	g.mu.Lock()
	last := len(g.spares) - 1
	if last < 0 {
		g.mu.Unlock()
		return nil, nil
	}
	s := g.spares[last]
	g.spares = g.spares[:last]
	g.mu.Unlock()
	err := g.disk.Move(s.in, s.name, s.in, name)
	if err != nil {
		s.close()
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return nil, err
	}
	s.name, s.commit = name, commitOf(name)
	return s, nil
}

// dropSpares removes the spare stages.
func (g *Gate) dropSpares() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	var errs []error
	for _, s := range g.spares {
		errs = append(errs, s.drop())
		s.close()
	}
	g.spares = nil
	return errors.Join(errs...)
}

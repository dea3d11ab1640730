package hook

import (
	"lockkeeper/internal/project/protect"
	"lockkeeper/internal/session"
)

// beside handles a file outside every codebase. It records the file in the codebases of other work
// trees of the same repository. So sessions that change the same file there are warned.
func (s *sorter) beside(file string) error {
	file = protect.Real(file)
	roots, err := session.RootsBeside(file, s.env)
	if err != nil {
		return err
	}
	for _, root := range roots {
		p, err := s.in(root)
		if err != nil {
			return err
		}
		if p != nil {
			p.beside = append(p.beside, file)
		}
	}
	return nil
}

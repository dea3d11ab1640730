package project

import (
	"context"

	"lockkeeper"
	"lockkeeper/internal/project/config"
)

// CheckCopy refuses to work on files of which this machine has an older copy than
// another one has landed. It matters only where several machines take part.
func (a *Project) CheckCopy(ctx context.Context, locks []lockkeeper.Lock) error {
	if a.Config.Deployment != config.MultiNode {
		return nil
	}
	g, err := a.Gate()
	if err != nil {
		return err
	}
	var files []string
	for _, l := range locks {
		if l.Kind == lockkeeper.File {
			files = append(files, l.Path)
		}
	}
	return g.CheckCopy(ctx, files...)
}

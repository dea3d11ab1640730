package project

import (
	"context"

	"lockkeeper"
	"lockkeeper/internal/project/config"
)

// CheckCopy refuses locks on files of which another machine has landed a newer version than
// this machine has. It applies only if several machines work on the codebase.
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

package landing

import (
	"context"

	"lockkeeper"
	"lockkeeper/internal/project"
)

// ReplaceDir replaces the directory dir as a whole with a copy of the directory from, under a grant
// that holds the directory above it for writing. The landing is nil if it has that content already.
func ReplaceDir(ctx context.Context, a *project.Project, grant *lockkeeper.Grant, dir, from string) (*lockkeeper.Landing, error) {
	target, final := Split(dir)
	if target == lockkeeper.Root {
		return nil, &lockkeeper.InputError{Field: "directory", Value: dir, Reason: "at the top of the codebase: its replacement is prepared beside it, in a directory that a lock can hold",
			Next: "name a directory that is inside another directory"}
	}
	g, err := a.Gate()
	if err != nil {
		return nil, err
	}
	return g.ReplaceDirFrom(ctx, grant, target, final, from)
}

// Split splits the path of a directory into the directory that must be locked, and the name.
func Split(dir string) (target, final string) {
	target, _ = lockkeeper.Parent(dir)
	if target == lockkeeper.Root || target == "" {
		return lockkeeper.Root, dir
	}
	return target, dir[len(target)+1:]
}

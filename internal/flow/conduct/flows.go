package conduct

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/flow/sidecar"
	"lockkeeper/internal/machine/disk"
	"lockkeeper/internal/project"
	"lockkeeper/internal/project/config"
)

// UnitsOf lists the units of a flow that have documents.
func UnitsOf(ctx context.Context, a *project.Project, f flow.Flow, docs *sidecar.Store) ([]string, error) {
	names, _, err := docs.Units(ctx)
	return slices.DeleteFunc(names, func(name string) bool { return !f.Owns(name) }), err
}

// Holder names who conducts the flows of this space now; empty: nobody does.
func Holder(ctx context.Context, a *project.Project) (string, error) {
	found, err := a.Locks.CheckConflicts(ctx, conductorLock())
	if err != nil || len(found) == 0 {
		return "", err
	}
	return found[0].Holder, nil
}

// Failures lists the work of a flow that failed.
func Failures(ctx context.Context, a *project.Project, flowName string) ([]run.Failure, error) {
	book, f, _, err := Book(a, flowName)
	if err != nil {
		return nil, err
	}
	return run.Failures(ctx, a.Store, book, f)
}

// Manifest reads the manifest of screens.
func Manifest(a *project.Project) (*flow.Manifest, error) {
	name := a.Config.Run.Screens
	text, err := os.ReadFile(a.Below(name))
	if err != nil {
		return nil, &lockkeeper.InputError{Field: "manifest", Value: name, Reason: disk.Reason(err), Next: "write it, or set run.screens in " + config.FileName}
	}
	return flow.ReadManifest(name, text)
}

// CheckTargets refuses write targets that could never land.
func CheckTargets(a *project.Project, paths []string) error {
	var wrong []error
	for _, path := range paths {
		wrong = append(wrong, permitsTarget(a, path))
	}
	return errors.Join(wrong...)
}

// patternLetters make a path a pattern, unless there is a file of that very name. Brackets
// are not among them: they are usual in the names of files that are new.
const patternLetters = "*?{"

// permitsTarget refuses a write target that could never land: a directory, a pattern, and
// what the gate keeps out.
func permitsTarget(a *project.Project, path string) error {
	target, err := a.Root.Resolve(a.Root.Dir(), path, lockkeeper.Write)
	switch {
	case err != nil:
		return err
	case target.Kind == lockkeeper.Dir:
		return &lockkeeper.OverLockError{Path: path, Policy: lockkeeper.DefaultPolicy}
	case strings.ContainsAny(path, patternLetters):
		if _, err := os.Lstat(a.Below(path)); err != nil {
			return &lockkeeper.InputError{Field: "path", Value: path, Reason: "a pattern, and targets are exact files", Next: "name each file"}
		}
	}
	return a.Permits(path)
}

// CanAskAPI reports whether there is a key for the Messages API.
func CanAskAPI(a *project.Project) bool {
	key, _ := a.Env("ANTHROPIC_API_KEY")
	return key != ""
}

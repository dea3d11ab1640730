package app

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/config"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/pipeline"
	"lockkeeper/internal/sidecar"
)

// UnitsOf lists the units of a flow that have documents.
func (a *App) UnitsOf(ctx context.Context, f flow.Flow, docs *sidecar.Store) ([]string, error) {
	names, _, err := docs.Units(ctx)
	return slices.DeleteFunc(names, func(name string) bool {
		if f.Name == flow.Tasks().Name {
			return name != pipeline.TasksUnit
		}
		return strings.HasPrefix(name, "+") // of another flow
	}), err
}

// Conductor names who conducts the flows of this space now; empty: nobody does.
func (a *App) Conductor(ctx context.Context) (string, error) {
	found, err := a.Locks.CheckConflicts(ctx, conductorLock())
	if err != nil || len(found) == 0 {
		return "", err
	}
	return found[0].Holder, nil
}

// Failures lists the work of a flow that failed.
func (a *App) Failures(ctx context.Context, flowName string) ([]pipeline.Failure, error) {
	book, _, _, err := a.Book(flowName)
	if err != nil {
		return nil, err
	}
	return pipeline.Failures(ctx, a.store, book, flowName)
}

// Manifest reads the manifest of screens.
func (a *App) Manifest() (*flow.Manifest, error) {
	name := a.Config.Run.Screens
	text, err := os.ReadFile(a.below(name))
	if err != nil {
		return nil, &lockkeeper.InputError{Field: "manifest", Value: name, Reason: reasonOf(err), Next: "write it, or set run.screens in " + config.FileName}
	}
	return flow.ReadManifest(name, text)
}

// CheckTargets refuses write targets that could never land.
func (a *App) CheckTargets(paths []string) error {
	var wrong []error
	for _, path := range paths {
		wrong = append(wrong, a.permitsTarget(path))
	}
	return errors.Join(wrong...)
}

// patternLetters make a path a pattern, unless there is a file of that very name. Brackets
// are not among them: they are usual in the names of files that are new.
const patternLetters = "*?{"

// permitsTarget refuses a write target that could never land: a directory, a pattern, and
// what the gate keeps out.
func (a *App) permitsTarget(path string) error {
	target, err := a.Root.Resolve(a.Root.Dir(), path, lockkeeper.Write)
	switch {
	case err != nil:
		return err
	case target.Kind == lockkeeper.Dir:
		return &lockkeeper.OverLockError{Path: path, Policy: lockkeeper.DefaultPolicy}
	case strings.ContainsAny(path, patternLetters):
		if _, err := os.Lstat(a.below(path)); err != nil {
			return &lockkeeper.InputError{Field: "path", Value: path, Reason: "a pattern, and targets are exact files", Next: "name each file"}
		}
	}
	return a.Permits(path)
}

// CanAskAPI reports whether there is a key for the Messages API.
func (a *App) CanAskAPI() bool {
	key, _ := a.env("ANTHROPIC_API_KEY")
	return key != ""
}

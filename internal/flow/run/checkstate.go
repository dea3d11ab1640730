package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"lockkeeper"

	"lockkeeper/internal/agent/workspace"
	"lockkeeper/internal/flow/documents"
)

// readProgress reads the state of a check phase. It returns nil if there is no state or the file
// is malformed. Then the phase starts again.
func readProgress(ctx context.Context, f *documents.Folder) (*checkState, error) {
	doc, err := f.Read(ctx, progressFile, func(body []byte) error {
		d := json.NewDecoder(bytes.NewReader(body))
		d.DisallowUnknownFields()
		return d.Decode(new(checkState))
	})
	var malformed *documents.MalformedError
	if doc == nil || errors.As(err, &malformed) {
		if malformed != nil {
			_, err = f.SetAside(ctx, progressFile)
		}
		return nil, err
	}
	at := new(checkState)
	return at, json.Unmarshal(doc.Body, at)
}

func (l *batchRun) save(ctx context.Context, at *checkState) error {
	_, err := l.folder.Write(context.WithoutCancel(ctx), progressFile, at, documents.About{By: l.p.opt.Actor.Name})
	return err
}

// forget removes the state of a phase whose document is stored.
func (l *batchRun) forget(ctx context.Context) error {
	doc, err := l.folder.Read(ctx, progressFile, func([]byte) error { return nil })
	if err != nil || doc == nil {
		return err
	}
	return l.folder.Remove(ctx, doc, progressFile)
}

// reset makes the workspace hold exactly the stored files of the batch.
func (l *batchRun) reset(ctx context.Context) error {
	changes, err := l.w.Survey(ctx, l.paths())
	if err != nil {
		return err
	}
	return l.undo(ctx, changes)
}

// undo does the same as reset, for changes that the caller has listed.
func (l *batchRun) undo(ctx context.Context, changes []workspace.Change) error {
	if err := l.undoFiles(ctx, changes); err != nil {
		return err
	}
	return l.w.Restore(ctx)
}

func (l *batchRun) undoFiles(ctx context.Context, changes []workspace.Change) error {
	clean, err := l.isStored(changes)
	if err != nil || clean {
		return err
	}
	if len(changes) > 0 {
		if _, err := l.w.TakeOut(ctx, pathsOf(changes)); err != nil {
			return err
		}
	}
	moved, err := l.p.replay(ctx, l.w, l.files, l.folder)
	if err == nil && len(moved) > 0 {
		err = &lockkeeper.MovedError{Path: moved[0]}
	}
	return err
}

func (l *batchRun) paths() (list []string) {
	for _, f := range l.files {
		list = append(list, f.Path)
	}
	return list
}

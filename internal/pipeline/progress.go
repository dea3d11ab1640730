package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"lockkeeper/internal/sidecar"
)

// readProgress reads how far a check got; nil: nothing is known, also when what is known
// cannot be read, for then the phase begins anew.
func readProgress(ctx context.Context, f *sidecar.Folder) (*progress, error) {
	doc, err := f.Read(ctx, progressFile, func(body []byte) error {
		d := json.NewDecoder(bytes.NewReader(body))
		d.DisallowUnknownFields()
		return d.Decode(new(progress))
	})
	var malformed *sidecar.MalformedError
	if doc == nil || errors.As(err, &malformed) {
		if malformed != nil {
			_, err = f.SetAside(ctx, progressFile)
		}
		return nil, err
	}
	at := new(progress)
	return at, json.Unmarshal(doc.Body, at)
}

// save stores how far a check got.
func (l *life) save(ctx context.Context, at *progress) error {
	_, err := l.folder.Write(context.WithoutCancel(ctx), progressFile, at, sidecar.About{By: l.p.opt.Actor.Name})
	return err
}

// forget drops it: the phase has its document.
func (l *life) forget(ctx context.Context) error {
	doc, err := l.folder.Read(ctx, progressFile, func([]byte) error { return nil })
	if err != nil || doc == nil {
		return err
	}
	return l.folder.Remove(ctx, doc, progressFile)
}

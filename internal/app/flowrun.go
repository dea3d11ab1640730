package app

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"lockkeeper"
	"lockkeeper/durable"
)

// FlowRun is one run of a flow: it may be interrupted and go on any number of times, and
// what it spends counts together.
type FlowRun struct {
	ID    string    `json:"id"`
	Flow  string    `json:"flow"`
	Began time.Time `json:"began"`
	Ended time.Time `json:"ended,omitzero"`
}

func (a *App) runPath() string { return filepath.Join(a.below(dirName), "run.json") }

// CurrentRun is the run that is under way, or was last; nil: there was none.
func (a *App) CurrentRun() (*FlowRun, error) {
	r, err := durable.ReadJSON[FlowRun](a.runPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return &r, err
}

// currentRun is the id of the run that goes on, or of a new one.
func (a *App) currentRun(ctx context.Context, name string) (string, error) {
	last, err := a.CurrentRun()
	if err != nil {
		return "", err
	}
	if last != nil && last.Ended.IsZero() && last.Flow == name {
		return last.ID, nil
	}
	if last != nil && last.Ended.IsZero() && last.Flow != name {
		return "", &lockkeeper.InputError{Field: "flow", Value: name, Reason: "a run of the flow " + last.Flow + " is not finished", Next: "lockkeeper run --flow " + last.Flow + ", or lockkeeper run --flow " + name + " --new"}
	}
	return a.NewRun(ctx, name)
}

// NewRun begins a run.
func (a *App) NewRun(ctx context.Context, name string) (string, error) {
	r := FlowRun{ID: time.Now().UTC().Format("20060102T150405"), Flow: name, Began: time.Now().UTC()}
	return r.ID, durable.WriteJSON(ctx, a.runPath(), r, 0o600)
}

// EndRun says that the run is finished.
func (a *App) EndRun(ctx context.Context) error {
	r, err := a.CurrentRun()
	if err != nil || r == nil {
		return err
	}
	r.Ended = time.Now().UTC()
	return durable.WriteJSON(ctx, a.runPath(), r, 0o600)
}

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
	Plan  string    `json:"plan,omitempty"` // of the tasks flow: the file
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

// runFor is the id of the run that a command is about: the one that goes on, or else a new
// one, which nobody begins who only looks.
func (a *App) runFor(ctx context.Context, o FlowOptions) (id string, err error) {
	if !o.New {
		id, err = a.goingOn(o.Flow)
	}
	switch {
	case err != nil || o.Look:
		return id, err
	case id == "":
		return a.NewRun(ctx, o.Flow, o.Plan)
	case o.Plan == "":
		return id, nil
	}
	return id, a.changeRun(ctx, func(r *FlowRun) { r.Plan = a.PlanPath(o.Plan) })
}

// PlanPath is where a plan is, as it was typed.
func (a *App) PlanPath(plan string) string {
	if plan == "" || filepath.IsAbs(plan) {
		return plan
	}
	return filepath.Join(a.base, plan)
}

// planFor is the plan of the run that goes on, or was last.
func (a *App) planFor(o FlowOptions) (string, error) {
	if o.Plan != "" || o.Flow != "tasks" {
		return o.Plan, nil
	}
	last, err := a.CurrentRun()
	if err != nil || last == nil || last.Flow != o.Flow {
		return "", err
	}
	return last.Plan, nil
}

// goingOn is the id of the run of a flow that is not finished; empty: there is none.
func (a *App) goingOn(name string) (string, error) {
	last, err := a.CurrentRun()
	if err != nil || last == nil || !last.Ended.IsZero() {
		return "", err
	}
	if last.Flow != name {
		return "", &lockkeeper.InputError{Field: "flow", Value: name, Reason: "a run of the flow " + last.Flow + " is not finished", Next: "lockkeeper run --flow " + last.Flow + ", or lockkeeper run --flow " + name + " --new"}
	}
	return last.ID, nil
}

// NewRun begins a run.
func (a *App) NewRun(ctx context.Context, name, plan string) (string, error) {
	r := FlowRun{ID: time.Now().UTC().Format("20060102T150405.000"), Flow: name, Plan: a.PlanPath(plan), Began: time.Now().UTC()}
	return r.ID, durable.WriteJSON(ctx, a.runPath(), r, 0o600)
}

// EndRun says that the run is finished.
func (a *App) EndRun(ctx context.Context) error {
	return a.changeRun(ctx, func(r *FlowRun) { r.Ended = time.Now().UTC() })
}

func (a *App) changeRun(ctx context.Context, change func(*FlowRun)) error {
	r, err := a.CurrentRun()
	if err != nil || r == nil {
		return err
	}
	change(r)
	return durable.WriteJSON(ctx, a.runPath(), r, 0o600)
}

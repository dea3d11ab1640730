package view_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/surface/view"
)

// A run whose scheduler crashed is in a global error state until a process conducts it again.
//
// shows: SW-74 PL-80
func TestCrashOfTheScheduler(t *testing.T) {
	s := newScene(t, "")
	ctx := t.Context()
	_, err := conduct.NewRun(ctx, s.app, "controllers", "")
	must(t, err)
	look := func(phase, why string) {
		t.Helper()
		state, err := s.look.State(ctx)
		must(t, err)
		now, err := s.look.Now(ctx, 0)
		must(t, err)
		status, err := s.look.Status(ctx)
		must(t, err)
		text, err := state.JSON()
		must(t, err)
		var sent struct{ Phase, Error string }
		must(t, json.Unmarshal(text, &sent))
		if state.Phase != phase || sent.Phase != phase || sent.Error != why || state.Error != why || status.Crash != why || now.Run.Error != why || now.Run.State != view.RunInterrupted {
			t.Errorf("state %s %q, sent %+v, status %q, now %+v; want %s %q", state.Phase, state.Error, sent, status.Crash, now.Run, phase, why)
		}
	}
	change := func(edit func(*conduct.Run)) {
		t.Helper()
		run, err := conduct.CurrentRun(s.app)
		must(t, err)
		edit(run)
		text, err := json.Marshal(run)
		must(t, err, os.WriteFile(filepath.Join(s.root, ".lockkeeper/run.json"), text, 0o600))
	}
	look("ready", "")
	gone := exec.Command("sleep", "1000")
	must(t, gone.Start())
	who, err := process.Identify(gone.Process.Pid)
	must(t, err)
	change(func(r *conduct.Run) { r.Conductor = &who })
	look("ready", "") // it is alive
	must(t, gone.Process.Kill())
	_ = gone.Wait() // killed
	look("error", "the process that conducted the run died")
	change(func(r *conduct.Run) { r.Conductor, r.Failure = nil, "the store is gone" })
	look("error", "the store is gone")
	lease, err := conduct.Lease(ctx, s.app, "another")
	must(t, err)
	state, err := s.look.State(ctx)
	must(t, err)
	if state.Phase == "error" || state.Error != "" {
		t.Errorf("a process conducts again, and yet %s: %s", state.Phase, state.Error)
	}
	must(t, lease.Release(ctx))
	must(t, conduct.EndRun(ctx, s.app))
	if run, err := conduct.CurrentRun(s.app); err != nil || run.Crash(s.app) != "" {
		t.Errorf("the run has ended: %v", err)
	}
}

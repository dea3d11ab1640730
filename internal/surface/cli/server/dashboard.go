package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/api"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

// A Dashboard is served while a command does other work.
type Dashboard struct {
	p      *program
	runs   *acts.Runs
	server *api.Server
}

// OpenDashboard serves the dashboard of a project. It prints the warnings of runs that were
// started in the dashboard, and no other errors of the server.
func OpenDashboard(ctx context.Context, core *command.Program, a *project.Project) (*Dashboard, error) {
	p := &program{core}
	b := &Dashboard{p: p, runs: acts.NewRuns(a, p.Env, warnings(p.logger()))}
	var err error
	if b.server, err = api.Open(ctx, p.serving(a, b.runs, serveOptions{}, slog.New(slog.DiscardHandler))); err != nil {
		return nil, errors.Join(err, b.runs.Close())
	}
	return b, nil
}

// Announce prints the address of the dashboard on one line.
func (b *Dashboard) Announce(ctx context.Context) error {
	if !b.p.mayLogIn() {
		fmt.Fprintf(b.p.Out, "dashboard: %s (lockkeeper login)\n", b.server.Address())
		return nil
	}
	link, err := b.server.LoginLink(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(b.p.Out, "dashboard: %s (logs you in once)\n", b.p.Painter(b.p.Out)(term.Bold, link))
	return nil
}

// Close stops the server and the runs started in it.
func (b *Dashboard) Close() error {
	return errors.Join(b.server.Close(), b.runs.Close())
}

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

// A Beside is the dashboard, served while a command does something else.
type Beside struct {
	p      *program
	runs   *acts.Runs
	server *api.Server
}

// OpenBeside serves the dashboard of a project. Its own errors are not shown: people
// only look at it. Runs started in it are real, and their warnings are logged.
func OpenBeside(ctx context.Context, core *command.Program, a *project.Project) (*Beside, error) {
	p := &program{core}
	b := &Beside{p: p, runs: acts.NewRuns(a, p.Env, troubles(p.trouble()))}
	var err error
	if b.server, err = api.Open(ctx, p.serving(a, b.runs, serveOptions{}, slog.New(slog.DiscardHandler))); err != nil {
		return nil, errors.Join(err, b.runs.Close())
	}
	return b, nil
}

// Announce prints the address of the dashboard on one line.
func (b *Beside) Announce(ctx context.Context) error {
	if !b.p.mayLogIn() {
		fmt.Fprintf(b.p.Out, "dashboard: %s (lockkeeper login)\n", b.server.Address())
		return nil
	}
	link, err := b.server.LoginLink(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(b.p.Out, "dashboard: %s (logs you in, once)\n", b.p.Painter(b.p.Out)(term.Bold, link))
	return nil
}

// Close stops the server and the runs started in it.
func (b *Beside) Close() error {
	return errors.Join(b.server.Close(), b.runs.Close())
}

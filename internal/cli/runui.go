package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"lockkeeper/internal/acts"
	"lockkeeper/internal/app"
	"lockkeeper/internal/httpapi"
)

// beside is the dashboard that is served for as long as something else goes on.
type beside struct {
	runs   *acts.Runs
	server *httpapi.Server
}

// serveBeside serves the dashboard of a codebase. What goes wrong with it disturbs nobody:
// it is only looked at. Runs that are started in it are as real as any, and are heard.
func (p *program) serveBeside(ctx context.Context, a *app.App) (*beside, error) {
	b := &beside{runs: acts.NewRuns(a, p.Env, troubles(p.trouble()))}
	var err error
	if b.server, err = httpapi.Open(ctx, p.serving(a, b.runs, serveOptions{}, slog.New(slog.DiscardHandler))); err != nil {
		return nil, errors.Join(err, b.runs.Close())
	}
	return b, nil
}

// announce says where the dashboard is, in a line.
func (b *beside) announce(ctx context.Context, p *program) error {
	if !p.mayLogIn() {
		fmt.Fprintf(p.Out, "dashboard: %s (lockkeeper login)\n", b.server.Address())
		return nil
	}
	link, err := b.server.LoginLink(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.Out, "dashboard: %s (logs you in, once)\n", p.painter(p.Out)(bold, link))
	return nil
}

func (b *beside) Close() error {
	return errors.Join(b.server.Close(), b.runs.Close())
}

// withUI runs body with the dashboard served beside it.
func (r *flowRun) withUI(ctx context.Context, body func() error) error {
	if r.o.noUI {
		return body()
	}
	b, err := r.serveBeside(ctx, r.a)
	if err != nil {
		fmt.Fprintf(r.Err, "note: the dashboard cannot be served: %s\n", clean(err.Error()))
		return body()
	}
	if !r.json {
		if err := b.announce(ctx, r.program); err != nil {
			return errors.Join(err, b.Close())
		}
	}
	return errors.Join(body(), b.Close())
}

package flows

import (
	"context"
	"errors"
	"fmt"

	"lockkeeper/internal/surface/cli/server"
	"lockkeeper/internal/surface/cli/term"
)

// withUI runs body with the dashboard served beside it.
func (r *flowRun) withUI(ctx context.Context, body func() error) error {
	if r.o.noUI {
		return body()
	}
	b, err := server.OpenDashboard(ctx, r.Program, r.a)
	if err != nil {
		fmt.Fprintf(r.Err, "note: the dashboard cannot be served: %s\n", term.Clean(err.Error()))
		return body()
	}
	if !r.JSON {
		if err := b.Announce(ctx); err != nil {
			return errors.Join(err, b.Close())
		}
	}
	return errors.Join(body(), b.Close())
}

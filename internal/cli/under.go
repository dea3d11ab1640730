package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/app"
	"lockkeeper/internal/process"
)

// ownTTL is the lease of a grant that a command takes for its own short work. It
// is renewed while the work lasts.
const ownTTL = time.Minute

// under does work under a grant of this terminal on files, which ends with it.
func (p *program) under(cmd *cobra.Command, a *app.App, reason string, wait time.Duration, paths []string, work func(context.Context, *lockkeeper.Grant) error) (err error) {
	holder, err := process.Holder()
	if err != nil {
		return err
	}
	self, err := process.Self()
	if err != nil {
		return err
	}
	req := lockkeeper.Request{Holder: holder, TTL: ownTTL, Process: &self, Metadata: map[string]string{"reason": reason}}
	for _, path := range paths {
		req.Locks = append(req.Locks, lockkeeper.Lock{Target: lockkeeper.Target{Path: path, Kind: lockkeeper.File}, Mode: lockkeeper.Write})
	}
	ctx, stop := interruptible(cmd.Context())
	defer stop()
	g, err := p.take(ctx, a, req, wait, a.Hold)
	if err != nil {
		return err
	}
	g.Keep()
	defer func() { err = errors.Join(err, g.Release(cmd.Context())) }()
	if err := work(ctx, &g.Grant); err != nil {
		return interrupted(ctx, err)
	}
	return nil
}

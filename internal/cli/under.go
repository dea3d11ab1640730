package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockkeeper"
	"lockkeeper/internal/acts"
	"lockkeeper/internal/app"
	"lockkeeper/internal/process"
	"lockkeeper/lock"
)

// ownLock is how a command gets the lock for its own short work.
type ownLock struct {
	grant grantID // one that is held already; empty: it takes its own
	wait  duration
}

func (o *ownLock) flags(f *pflag.FlagSet) {
	f.Var(&o.grant, "grant", "the `id` of a grant of yours that holds the paths (default: take the locks for this)")
	f.Var(&o.wait, "wait", "how long to wait in line when blocked (default: not at all)")
}

// under does work on files under a grant: one of this user that is named, or one of
// this terminal that ends with it.
func (p *program) under(cmd *cobra.Command, a *app.App, reason string, o ownLock, paths []string, work func(context.Context, *lockkeeper.Grant) error) error {
	ctx, stop := interruptible(cmd.Context())
	defer stop()
	if o.grant != "" {
		grant, err := a.GrantOf(string(o.grant))
		if err == nil {
			err = work(ctx, grant)
		}
		if err != nil {
			return interrupted(ctx, errors.Join(err, p.explainGrant(ctx, a, o.grant, err)))
		}
		return nil
	}
	holder, err := process.Holder()
	if err != nil {
		return err
	}
	own := acts.Taking(holder, func(ctx context.Context, req lockkeeper.Request) (*lock.Grant, error) {
		return p.take(ctx, a, req, time.Duration(o.wait), a.Hold)
	})
	return own(ctx, reason, paths, func(ctx context.Context, grant *lockkeeper.Grant) error {
		if err := work(ctx, grant); err != nil {
			return interrupted(ctx, err)
		}
		return nil
	})
}

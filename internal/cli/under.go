package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockkeeper"
	"lockkeeper/internal/app"
	"lockkeeper/internal/process"
)

// ownTTL is the lease of a grant that a command takes for its own short work. It
// is renewed while the work lasts.
const ownTTL = time.Minute

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
func (p *program) under(cmd *cobra.Command, a *app.App, reason string, o ownLock, paths []string, work func(context.Context, *lockkeeper.Grant) error) (err error) {
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
	self, err := process.Self()
	if err != nil {
		return err
	}
	req := lockkeeper.Request{Holder: holder, TTL: ownTTL, Process: &self, Metadata: map[string]string{"reason": reason}}
	for _, path := range paths {
		req.Locks = append(req.Locks, lockkeeper.Lock{Target: lockkeeper.Target{Path: path, Kind: lockkeeper.File}, Mode: lockkeeper.Write})
	}
	g, err := p.take(ctx, a, req, time.Duration(o.wait), a.Hold)
	if err != nil {
		return err
	}
	// Most work is over long before the lease needs to be renewed. A keeper that was
	// there from the start would often meet the release, and record that it found
	// nothing to renew.
	keeper := time.AfterFunc(ownTTL/3, g.Keep)
	defer func() {
		keeper.Stop()
		err = errors.Join(err, g.Release(cmd.Context()))
	}()
	if err := work(ctx, &g.Grant); err != nil {
		return interrupted(ctx, err)
	}
	return nil
}

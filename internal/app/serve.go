package app

import (
	"context"
	"path/filepath"

	"lockkeeper/internal/feed"
)

// AccessDir is where who may use the server of this codebase is kept, in the user's own
// directory.
func (a *App) AccessDir() string { return filepath.Join(a.state, "access", a.Space) }

// Feed follows the event log from now on. It is the caller's to close.
func (a *App) Feed(ctx context.Context, opt feed.Options) (*feed.Feed, error) {
	return feed.Open(ctx, a.store, opt)
}

package project

import (
	"context"
	"time"

	"lockkeeper"
	"lockkeeper/internal/project/config"
	"lockkeeper/store/sqlstore"
)

// moved reports whether the root's locks were kept at another address of PostgreSQL.
func (i *initializer) moved(seen *witness) bool {
	return seen != nil && config.IsPostgres(seen.Store) && config.IsPostgres(i.config.Store) &&
		storeName(seen.Store, i.root) != storeName(i.config.Store, i.root)
}

// oldStoreLimit is how long the old server may take to show that it still has the space.
const oldStoreLimit = 5 * time.Second

// follow makes the root use its space at another address, as after a failover. The new server must have the space,
// and the old one must not serve it any more: its users would not see each other's locks.
func (i *initializer) follow(ctx context.Context, marked *marker, seen *witness) error {
	if err := i.verify(ctx, marked); err != nil {
		return err
	}
	if err := i.oldGone(ctx, marked.Space, seen.Store); err != nil {
		return err
	}
	if err := i.world.remember(ctx, marked.Space, config.Redact(i.config.Store)); err != nil {
		return err
	}
	i.result.Made = append(i.result.Made, "a note that the locks are kept in "+i.result.Store+" now")
	return nil
}

// oldGone refuses to follow if the old address leads to a server that still gives locks, and is not the new one.
func (i *initializer) oldGone(ctx context.Context, space, old string) error {
	limited, cancel := context.WithTimeout(ctx, oldStoreLimit)
	defer cancel()
	same, err := sqlstore.SameServer(limited, old, i.config.Store, space)
	if err != nil || same { // the old one is gone or read-only
		return ctx.Err()
	}
	return &lockkeeper.RefusedError{Act: "init", Reason: old + " still serves the locks of this root, and is another server: its users would not see yours",
		Next: "stop that server, or make it a standby; then repeat the command"}
}

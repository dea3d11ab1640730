//go:build nopostgres

package sqlstore

import (
	"context"
	"errors"

	"lockkeeper/store"
)

// Postgres is never opened by a program that is built with the tag nopostgres.
type Postgres struct{ store.Store }

var errNoPostgres = errors.New("this program is built without PostgreSQL")

// CreateSpace returns an error.
func CreateSpace(context.Context, string, string) error { return errNoPostgres }

// OpenPostgres returns an error.
func OpenPostgres(context.Context, string, string, Options) (*Postgres, error) {
	return nil, errNoPostgres
}

// SameServer fails: this program has no PostgreSQL.
func SameServer(context.Context, string, string, string) (bool, error) {
	return false, errNoPostgres
}

//go:build !nopostgres

package sqlstore

import (
	"context"
	"errors"
)

var errStandby = errors.New("the server is a standby")

// SameServer reports whether two addresses lead to one server that gives locks of a space. It returns an error if one
// of them does not.
func SameServer(ctx context.Context, one, other, space string) (bool, error) {
	first, err := incarnationAt(ctx, one, space)
	if err != nil {
		return false, err
	}
	second, err := incarnationAt(ctx, other, space)
	return first == second, err
}

func incarnationAt(ctx context.Context, url, space string) (is string, err error) {
	p, err := dial(ctx, url, space, Options{})
	if err != nil {
		return "", err
	}
	defer p.pool.Close()
	if err := p.open(ctx); err != nil {
		return "", p.explain(ctx, err)
	}
	standby := false
	err = p.inTransaction(ctx, func(s *pgSession) error {
		return s.query(`SELECT incarnation(), pg_is_in_recovery()`, nil, func(scan func(...any) error) error { return scan(&is, &standby) })
	})
	if err == nil && standby {
		err = errStandby
	}
	return is, p.explain(ctx, err)
}

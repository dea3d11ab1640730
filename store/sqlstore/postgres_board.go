//go:build !nopostgres

package sqlstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"lockkeeper/store"
)

const (
	postsSQL = `SELECT key, version, body, expires, at, ` + nowSQL + ` FROM posts WHERE space = $1 AND kind = $2 ORDER BY key COLLATE "C"`

	expiresSQL = `CASE WHEN $5::bigint = 0 THEN 0 ELSE ` + nowSQL + ` + $5::bigint END`
	insertPost = `INSERT INTO posts (space, kind, key, version, body, expires, at)
 VALUES ($1, $2, $3, nextval('post_versions'), $4, ` + expiresSQL + `, ` + nowSQL + `) ON CONFLICT DO NOTHING RETURNING version`
	updatePost = `UPDATE posts SET version = nextval('post_versions'), body = $4, expires = ` + expiresSQL + `, at = ` + nowSQL + `
 WHERE space = $1 AND kind = $2 AND key = $3 AND version = $6 RETURNING version`
	removePost = `DELETE FROM posts WHERE space = $1 AND kind = $2 AND key = $3 AND version = $4 RETURNING version`
)

// Posts implements store.Board.
func (p *Postgres) Posts(ctx context.Context, kind string) (list []store.Post, err error) {
	err = p.with(ctx, func(conn *pgx.Conn) (bool, error) {
		list = nil
		err := p.session(ctx, conn).query(postsSQL, []any{p.key, kind}, func(scan func(...any) error) error {
			post := store.Post{Kind: kind}
			var version, expires, at, now int64
			err := scan(&post.Key, &version, &post.Body, &expires, &at, &now)
			post.Version, post.At = uint64(version), time.Unix(0, at).UTC()
			if expires != 0 {
				post.Left = time.Duration(expires - now)
			}
			list = append(list, post)
			return err
		})
		return conn.IsClosed(), err
	})
	return list, p.explain(ctx, err)
}

// Put implements store.Board.
func (p *Postgres) Put(ctx context.Context, post store.Post) (uint64, error) {
	args := []any{p.key, post.Kind, post.Key, string(post.Body), int64(post.TTL)}
	if post.Version == 0 {
		return p.post(ctx, insertPost, args...)
	}
	return p.post(ctx, updatePost, append(args, int64(post.Version))...)
}

// Drop implements store.Board.
func (p *Postgres) Drop(ctx context.Context, kind, key string, version uint64) (bool, error) {
	was, err := p.post(ctx, removePost, p.key, kind, key, int64(version))
	return was != 0, err
}

// post runs a statement that changes at most one post, and returns its version; 0: none was changed.
func (p *Postgres) post(ctx context.Context, sql string, args ...any) (uint64, error) {
	var version int64
	err := p.with(ctx, func(conn *pgx.Conn) (bool, error) {
		err := p.session(ctx, conn).query(sql, args, func(scan func(...any) error) error { return scan(&version) })
		return pgconn.SafeToRetry(err), err
	})
	return uint64(version), p.explain(ctx, err)
}

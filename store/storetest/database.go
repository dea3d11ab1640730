package storetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
)

// A Database is a PostgreSQL database for one test run of a package, so that runs never share a
// schema. The first call of URL creates it, and Drop removes it.
type Database struct {
	Prefix string // prefix of the database's name

	once sync.Once
	name string
	url  string
	err  error
}

// URL creates the database on first use and returns its URL.
func (d *Database) URL() (string, error) {
	d.once.Do(func() { d.err = d.make() })
	return d.url, d.err
}

func (d *Database) make() error {
	base := os.Getenv("LOCKKEEPER_TEST_POSTGRES")
	if base == "" {
		return errors.New("LOCKKEEPER_TEST_POSTGRES is not set: run make test, or scripts/postgres run -- go test ./…")
	}
	u, err := url.Parse(base)
	if err != nil {
		return err
	}
	name := d.Prefix + "_" + strings.ToLower(rand.Text())
	if err := Administer("CREATE DATABASE " + name); err != nil {
		return err
	}
	u.Path = "/" + name
	d.name, d.url = name, u.String()
	return nil
}

// Drop removes the database, if there is one.
func (d *Database) Drop() {
	if d.name == "" {
		return
	}
	if err := Administer("DROP DATABASE " + d.name + " WITH (FORCE)"); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// Administer runs a statement on the server, outside any test database.
func Administer(sql string, args ...any) error {
	conn, err := pgx.Connect(context.Background(), os.Getenv("LOCKKEEPER_TEST_POSTGRES"))
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	_, err = conn.Exec(context.Background(), sql, args...)
	return err
}

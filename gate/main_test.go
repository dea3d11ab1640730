package gate_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"
)

// childArg makes the test binary one of the processes of the tests.
const childArg = "gate-child"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == childArg {
		os.Exit(child(os.Args[2]))
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		dropDatabase()
		os.Exit(code)
	}))
}

// database makes one database for the whole run, so that nothing of another run
// is met, and returns its URL.
var database = sync.OnceValues(func() (string, error) {
	base := os.Getenv("LOCKKEEPER_TEST_POSTGRES")
	if base == "" {
		return "", fmt.Errorf("LOCKKEEPER_TEST_POSTGRES is not set: run make test, or scripts/postgres run -- go test ./…")
	}
	u, err := url.Parse(base)
	if err != nil {
		return "", err
	}
	name := "gate_" + strings.ToLower(rand.Text())
	if err := administer("CREATE DATABASE " + name); err != nil {
		return "", err
	}
	madeDatabase = name
	u.Path = "/" + name
	return u.String(), nil
})

var madeDatabase string

func dropDatabase() {
	if madeDatabase == "" {
		return
	}
	if err := administer("DROP DATABASE " + madeDatabase + " WITH (FORCE)"); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

func administer(sql string, args ...any) error {
	conn, err := pgx.Connect(context.Background(), os.Getenv("LOCKKEEPER_TEST_POSTGRES"))
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	_, err = conn.Exec(context.Background(), sql, args...)
	return err
}

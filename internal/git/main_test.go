package git

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"lockkeeper/internal/git/gittest"
)

// childArg makes the test binary act as a program that commits one file and is killed.
const childArg = "repo-child"

func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == childArg {
		if err := commitOne(os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	gittest.Alone()
	goleak.VerifyTestMain(m)
}

func commitOne(root, path string) error {
	r, err := Open(context.Background(), root, os.Environ())
	if err != nil {
		return err
	}
	_, err = r.Commit(context.Background(), Commit{Paths: []string{path}, Subject: "One"})
	return err
}

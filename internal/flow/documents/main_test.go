package documents

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// childArg makes the test binary act as a child process of a test.
const childArg = "documents-child"

func TestMain(m *testing.M) {
	if len(os.Args) >= 3 && os.Args[1] == childArg {
		if err := children()[os.Args[2]](os.Args[3:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fresh returns a store whose directory does not exist yet.
func fresh(t *testing.T) *Store { return Open(filepath.Join(t.TempDir(), "app", ".pipeline")) }

// A result is a sample document.
type result struct {
	Count int      `json:"count"`
	Files []string `json:"files"`
}

func checkResult(body []byte) error { return strictly(body, &result{}) }

// strictly refuses members that the type does not have, as a schema would.
func strictly(body []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}

// wantMalformed returns the *MalformedError in err, and fails the test if there is none.
func wantMalformed(t *testing.T, err error) *MalformedError {
	t.Helper()
	var bad *MalformedError
	if !errors.As(err, &bad) {
		t.Fatalf("got %v, want a malformed file", err)
	}
	return bad
}

// at returns a time for tests.
func at(minute int) time.Time { return time.Date(2026, 3, 4, 5, minute, 6, 789, time.UTC) }

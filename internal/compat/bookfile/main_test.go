package bookfile_test

import (
	"testing"

	"go.uber.org/goleak"

	"lockkeeper/internal/compat/bookfile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const mark = bookfile.Mark("space")

func entry(resource, timestamp, instance string) bookfile.Entry {
	return bookfile.Entry{Resource: resource, Timestamp: timestamp, Instance: instance}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

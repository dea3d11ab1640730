package coverage_test

import (
	"testing"

	"lockkeeper/internal/git/gittest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	gittest.Alone()
	goleak.VerifyTestMain(m)
}

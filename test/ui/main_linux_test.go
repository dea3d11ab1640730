//go:build ui

// The tests in this directory use the dashboard as people do: in a real browser, with keys
// and clicks, on the sample application whose agents are scripted. `make test-ui` installs
// the browser.
package ui_test

import (
	"testing"

	"lockkeeper/internal/project/projecttest"
)

func TestMain(m *testing.M) { projecttest.Main(m) }

var must = projecttest.Must

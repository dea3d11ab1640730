//go:build ui

// The tests in this directory use the dashboard as people do: in a real browser, with keys
// and clicks, on the sample application whose agents are scripted. `make test-ui` installs
// the browser.
package ui_test

import (
	"testing"

	"lockkeeper/internal/project/projecttest"
	"lockkeeper/internal/surface/cli"
)

func TestMain(m *testing.M) {
	projecttest.Main(m, projecttest.Program{Name: projecttest.Lockkeeper, Main: cli.Process})
}

var must = projecttest.Must

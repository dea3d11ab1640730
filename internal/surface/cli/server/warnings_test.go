package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

// A warning of a run goes to standard error, with its unit, batch and phase.
func TestWarningsOfRunsAreLogged(t *testing.T) {
	errors, err := os.Create(filepath.Join(t.TempDir(), "errors"))
	if err != nil {
		t.Fatal(err)
	}
	defer errors.Close() // only read
	tell := warnings((&program{&command.Program{IO: &term.IO{Err: errors}}}).logger())
	tell(run.News{Kind: run.NewsStarted, Unit: "blog/posts", Text: "started"})
	tell(run.News{Kind: run.NewsWarning, Unit: "blog/posts", Batch: "b1", Phase: "apply", Text: "the agent changed nothing"})
	text, err := os.ReadFile(errors.Name())
	if err != nil || strings.Contains(string(text), "started") || !strings.Contains(string(text), `level=WARN msg="the agent changed nothing" unit=blog/posts batch=b1 phase=apply`) {
		t.Errorf("%v: %s", err, text)
	}
}

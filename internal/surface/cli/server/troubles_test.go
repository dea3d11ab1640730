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

// What a run of a server warns of is on the stream of errors, with where it was.
func TestTroublesOfRuns(t *testing.T) {
	errors, err := os.Create(filepath.Join(t.TempDir(), "errors"))
	if err != nil {
		t.Fatal(err)
	}
	defer errors.Close() // nothing of it is needed any more
	tell := troubles((&program{&command.Program{IO: &term.IO{Err: errors}}}).trouble())
	tell(run.News{Kind: run.NewsStarted, Unit: "blog/posts", Text: "it began"})
	tell(run.News{Kind: run.NewsWarning, Unit: "blog/posts", Batch: "b1", Phase: "apply", Text: "the agent changed nothing"})
	text, err := os.ReadFile(errors.Name())
	if err != nil || strings.Contains(string(text), "it began") || !strings.Contains(string(text), `level=WARN msg="the agent changed nothing" unit=blog/posts batch=b1 phase=apply`) {
		t.Errorf("%v: %s", err, text)
	}
}

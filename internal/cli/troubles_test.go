package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockkeeper/internal/pipeline"
)

// What a run of a server warns of is on the stream of errors, with where it was.
func TestTroublesOfRuns(t *testing.T) {
	errors, err := os.Create(filepath.Join(t.TempDir(), "errors"))
	if err != nil {
		t.Fatal(err)
	}
	defer errors.Close() // nothing of it is needed any more
	tell := troubles((&program{IO: &IO{Err: errors}}).trouble())
	tell(pipeline.News{Kind: pipeline.NewsStarted, Unit: "blog/posts", Text: "it began"})
	tell(pipeline.News{Kind: pipeline.NewsWarning, Unit: "blog/posts", Batch: "b1", Phase: "apply", Text: "the agent changed nothing"})
	text, err := os.ReadFile(errors.Name())
	if err != nil || strings.Contains(string(text), "it began") || !strings.Contains(string(text), `level=WARN msg="the agent changed nothing" unit=blog/posts batch=b1 phase=apply`) {
		t.Errorf("%v: %s", err, text)
	}
}

package flows

import (
	"errors"
	"strings"
	"testing"

	"lockkeeper/internal/flow/run"
)

// Joined errors are separated by semicolons in their one line.
func TestJoinedErrorsInALine(t *testing.T) {
	joined := errors.Join(errors.New("one: wrong; next: fix it"), errors.New("two:  wrong, too\n"))
	line := newsLine(run.News{Kind: run.NewsFailed, Unit: "blog/posts", Phase: "batch_plan", Text: joined.Error()})
	if want := " blog/posts batch_plan failed: one: wrong; next: fix it; two: wrong, too"; !strings.HasSuffix(line, want) {
		t.Errorf("got %q, want %q at its end", line, want)
	}
}

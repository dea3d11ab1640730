package jobs

import (
	"fmt"
	"strings"

	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/view"
)

// activeShown is how many running items status names.
const activeShown = 5

// ShowQueue prints the queue in a line, unless it is empty, and returns the next step.
func ShowQueue(p *command.Program, s *view.Status) (next string) {
	if s.Depth+len(s.Active)+s.Failed == 0 {
		return ""
	}
	line := fmt.Sprintf("queue: %d queued (%d ready), %d failed, %d running", s.Depth, s.Ready, s.Failed, len(s.Active))
	var names []string
	for _, it := range s.Active[:min(len(s.Active), activeShown)] {
		names = append(names, fmt.Sprintf("%s (%s) %s", it.ID, Title(it), term.Clean(it.Phase)))
	}
	if more := len(s.Active) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	if names != nil {
		line += ": " + strings.Join(names, ", ")
	}
	fmt.Fprintln(p.Out, p.Painter(p.Out)(term.Bold, line))
	switch {
	case s.Failed > 0:
		return "lockkeeper job list --status failed"
	case s.Depth > 0 && s.Workers == 0:
		return startWorker
	}
	return ""
}

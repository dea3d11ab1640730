package cli

import (
	"context"
	"fmt"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/app"
)

// queueStatus is the queue as status shows it.
type queueStatus struct {
	Depth  int                `json:"queue_depth"`
	Ready  int                `json:"queue_ready"` // of these, not blocked
	Failed int                `json:"queue_failed"`
	Active []*lockkeeper.Item `json:"active_items"`

	workers int // at work
}

// gatherQueue adds what is queued and runs.
func (s *queueStatus) gatherQueue(ctx context.Context, a *app.App) error {
	q, err := a.Queue()
	if err != nil {
		return err
	}
	c, err := q.Census(ctx)
	if err != nil {
		return err
	}
	s.Depth, s.Ready, s.Failed = c.Queued(), c.Ready, c.Failed
	active, err := q.Active(ctx)
	if err != nil {
		return err
	}
	s.Active = listOf(active)
	workers, err := q.Workers(ctx)
	s.workers = len(workers)
	return err
}

// activeShown is how many running items status names.
const activeShown = 5

// showQueue tells of the queue in a line, and returns the next step; of an empty one
// nothing is said.
func (p *program) showQueue(s *queueStatus) (next string) {
	if s.Depth+len(s.Active)+s.Failed == 0 {
		return ""
	}
	line := fmt.Sprintf("queue: %d queued (%d ready), %d failed, %d running", s.Depth, s.Ready, s.Failed, len(s.Active))
	var names []string
	for _, it := range s.Active[:min(len(s.Active), activeShown)] {
		names = append(names, fmt.Sprintf("%s (%s) %s", it.ID, title(it), clean(it.Phase)))
	}
	if more := len(s.Active) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	if names != nil {
		line += ": " + strings.Join(names, ", ")
	}
	fmt.Fprintln(p.Out, p.painter(p.Out)(bold, line))
	switch {
	case s.Failed > 0:
		return "lockkeeper job list --status error"
	case s.Depth > 0 && s.workers == 0:
		return startWorker
	}
	return ""
}

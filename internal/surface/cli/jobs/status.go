package jobs

import (
	"context"
	"fmt"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/job"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

// QueueStatus is the queue as status shows it.
type QueueStatus struct {
	Depth  int                `json:"queue_depth"`
	Ready  int                `json:"queue_ready"` // queued items that are not blocked
	Failed int                `json:"queue_failed"`
	Active []*lockkeeper.Item `json:"active_items"`

	workers int // running
}

// GatherQueue reads the queue.
func (s *QueueStatus) GatherQueue(ctx context.Context, a *project.Project) error {
	q, err := job.Open(a)
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
	s.Active = command.ListOf(active)
	workers, err := q.Workers(ctx)
	s.workers = len(workers)
	return err
}

// activeShown is how many running items status names.
const activeShown = 5

// Show prints the queue in a line, unless it is empty, and returns the next step.
func (s *QueueStatus) Show(p *command.Program) (next string) {
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
	case s.Depth > 0 && s.workers == 0:
		return startWorker
	}
	return ""
}

package job_test

import (
	"fmt"
	"testing"

	"lockkeeper"
	"lockkeeper/internal/job"
	"lockkeeper/internal/project/projecttest"
	"lockkeeper/sched"
)

// The limits of agents and of API calls are settings of their own.
//
// shows: PL-71 SW-22
func TestLimits(t *testing.T) {
	q, err := job.Open(projecttest.Empty(t, "max_claude_concurrency: 2\nmax_api_concurrency: 3\n").Open(t))
	projecttest.Must(t, err)
	for _, pool := range []string{sched.PoolAgent, sched.PoolAPI} {
		for n := range 5 {
			_, err := q.Enqueue(t.Context(), sched.ItemSpec{Workflow: fmt.Sprint(pool, n), Pools: []string{pool}, By: lockkeeper.System()})
			projecttest.Must(t, err)
		}
	}
	running := map[string]int{}
	for {
		started, err := q.Dispatch(t.Context(), lockkeeper.Worker{ID: "w", Node: "here"})
		projecttest.Must(t, err)
		if started == nil {
			break
		}
		running[started.Item.Pools[0]]++
	}
	if running[sched.PoolAgent] != 2 || running[sched.PoolAPI] != 3 {
		t.Errorf("%v run at the same time", running)
	}
}

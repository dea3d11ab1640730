package sched

import (
	"slices"
	"strings"
	"time"

	"lockkeeper"
)

// These are the pools of every space. The name of a pool that caps a project ends with the name of
// the project.
const (
	PoolAgent = "claude" // processes of agents
	PoolAPI   = "api"    // API calls to a model
	PoolTest  = "test"   // test runs
	PoolJobs  = "jobs"   // submitted jobs
	PoolCPU   = "cpu"    // submitted jobs that are heavy on the processor

	// PoolPrepare has the items that a worker prepares before they have the slot of an agent. An
	// item keeps its slot of this pool until it gets that of the agent.
	PoolPrepare = "prepare"

	jobsOf = "jobs of "
	mapsOf = "maps of "
)

// Limits says how many slots each pool has.
type Limits struct {
	Agents, API, Tests, Jobs, CPU  int
	JobsPerProject, MapsPerProject int
}

// DefaultLimits returns the limits of a configuration that sets none.
func DefaultLimits() Limits {
	return Limits{Agents: 12, API: 20, Tests: 1, Jobs: 16, CPU: 4, JobsPerProject: 8, MapsPerProject: 2}
}

// Of returns how many slots a pool has, and whether the pool exists.
func (l Limits) Of(pool string) (int, bool) {
	switch {
	case strings.HasPrefix(pool, jobsOf):
		return l.JobsPerProject, true
	case strings.HasPrefix(pool, mapsOf):
		return l.MapsPerProject, true
	}
	n, known := l.pools()[pool]
	return n, known
}

// pools returns the limits of the pools that are not for one project.
func (l Limits) pools() map[string]int {
	return map[string]int{PoolAgent: l.Agents, PoolAPI: l.API, PoolTest: l.Tests, PoolJobs: l.Jobs, PoolCPU: l.CPU, PoolPrepare: l.Prepared()}
}

// Prepared returns how many items are prepared at once before they have the slot of an agent. They
// are few: they hold locks and workspaces, and an item that is queued later cannot overtake them.
func (l Limits) Prepared() int { return 2 + l.Agents/4 }

func (l Limits) check() error {
	if min(l.Agents, l.API, l.Tests, l.Jobs, l.CPU, l.JobsPerProject, l.MapsPerProject) < 1 {
		return &lockkeeper.InputError{Field: "limits", Reason: "a pool without slots would stop all work that needs it", Next: "give each pool at least one"}
	}
	return nil
}

// Options configures a Queue. The zero value is ready to use.
type Options struct {
	Phases         Phases        // default: only DefaultPhase
	Limits         Limits        // default: DefaultLimits
	LockTimeout    time.Duration // default 300 s
	MaxLockRetries int           // default 11; negative: none
	EscalateAfter  time.Duration // how long an item waits for locks or a slot before it is escalated; default 10 min
	MaxAttempts    int           // default 3
}

func (o Options) withDefaults() Options {
	if o.Phases == nil {
		o.Phases = Phases{{DefaultPhase}}
	}
	if o.Limits == (Limits{}) {
		o.Limits = DefaultLimits()
	}
	if o.LockTimeout <= 0 {
		o.LockTimeout = 300 * time.Second
	}
	switch {
	case o.MaxLockRetries == 0:
		o.MaxLockRetries = 11
	case o.MaxLockRetries < 0:
		o.MaxLockRetries = 0
	}
	if o.EscalateAfter <= 0 {
		o.EscalateAfter = 10 * time.Minute
	}
	if o.MaxAttempts <= 0 {
		o.MaxAttempts = 3
	}
	return o
}

// DefaultPhase is the phase of an item that names none.
const DefaultPhase = "job"

// Phases lists the phases of each rank. Items in a phase of the first rank start first.
type Phases [][]string

// Rank returns the rank of a phase, and whether the phase exists.
func (p Phases) Rank(phase string) (int, bool) {
	for rank, names := range p {
		if slices.Contains(names, phase) {
			return rank, true
		}
	}
	return 0, false
}

// Names lists the phases by rank.
func (p Phases) Names() []string { return slices.Concat(p...) }

// String lists the phases by rank, for messages.
func (p Phases) String() string { return strings.Join(p.Names(), ", ") }

func (p Phases) check() error {
	if _, known := p.Rank(DefaultPhase); !known {
		return &lockkeeper.InputError{Field: "phases", Value: p.String(), Reason: "the phase of items that name none is missing", Next: "add " + DefaultPhase}
	}
	return nil
}

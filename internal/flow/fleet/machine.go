package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"lockkeeper/store"
)

// A Machine is a process that takes calls of runs, or conducts one.
type Machine struct {
	ID       string    `json:"id"`   // of the process
	Name     string    `json:"name"` // the host, for people
	Root     string    `json:"root"`
	Began    time.Time `json:"began"`
	Conducts bool      `json:"conducts,omitempty"`
	Stops    bool      `json:"stops,omitempty"` // it takes no further call
	Agents   int       `json:"agents"`          // how many agents it runs at once
	Tests    int       `json:"tests"`           // how many test commands it runs at once
	Programs []string  `json:"programs"`        // the agents that it can run; empty: any
	Labels   []string  `json:"labels,omitempty"`
	Working  []Working `json:"working"` // what it does now
	Calls    int       `json:"calls"`   // how many calls it has ended
	MicroUSD int64     `json:"micro_usd"`

	version uint64
	said    time.Time // when it was last renewed
	Gone    bool      `json:"gone,omitempty"` // it was not renewed in time
}

// Working is one call that a machine carries out.
type Working struct {
	Call  string    `json:"call,omitempty"` // empty: on the conductor
	Work  string    `json:"work"`           // the unit, or unit/batch
	Phase string    `json:"phase"`
	Pool  string    `json:"pool"`
	Since time.Time `json:"since"`
}

// Announce registers a machine, or renews and replaces what it said.
func (f *Fleet) Announce(ctx context.Context, m *Machine) error {
	for range 2 {
		version, err := f.put(ctx, machineKind, m.ID, m.version, Lease, m)
		if err != nil || version != 0 {
			m.version = version
			return err
		}
		m.version = 0 // it was removed as dead, or the answer to an earlier renewal was lost
		posts, err := f.board.Posts(ctx, machineKind)
		if err != nil {
			return err
		}
		if at := slices.IndexFunc(posts, func(p store.Post) bool { return p.Key == m.ID }); at >= 0 {
			m.version = posts[at].Version
		}
	}
	return errLost("another process registered as "+m.ID, "")
}

// Leave removes a machine.
func (f *Fleet) Leave(ctx context.Context, m *Machine) error {
	_, err := f.board.Drop(ctx, machineKind, m.ID, m.version)
	return err
}

// forgetAfter is how long a machine that disappeared is still shown.
const forgetAfter = 10 * time.Minute

// Machines lists the machines of the space, conductors first. Those that were not renewed in time
// are Gone.
func (f *Fleet) Machines(ctx context.Context) (list []Machine, err error) {
	err = read(ctx, f, machineKind, func(p store.Post, m Machine) {
		m.version, m.said, m.Gone = p.Version, p.At, p.Left <= 0
		if -p.Left < forgetAfter {
			list = append(list, m)
			return
		}
		f.board.Drop(ctx, machineKind, p.Key, p.Version) // another process may have done so
	})
	slices.SortStableFunc(list, func(a, b Machine) int {
		switch {
		case a.Conducts != b.Conducts && a.Conducts:
			return -1
		case a.Conducts != b.Conducts:
			return 1
		}
		return a.Began.Compare(b.Began)
	})
	return ofRun(list), err
}

// ofRun leaves out machines that disappeared before the current conductor began.
func ofRun(list []Machine) []Machine {
	now := slices.IndexFunc(list, func(m Machine) bool { return m.Conducts && !m.Gone })
	if now < 0 {
		return list
	}
	began := list[now].Began
	return slices.DeleteFunc(list, func(m Machine) bool { return m.Gone && m.said.Before(began) })
}

// String says what the machine is and does, in one line.
func (m Machine) String() string {
	parts := []string{fmt.Sprintf("agents %d/%d, tests %d/%d", m.Busy(AgentPool), m.Agents, m.Busy(TestPool), m.Tests)}
	if m.Conducts {
		parts = append(parts, "conducts")
	}
	if m.Stops {
		parts = append(parts, "takes no further call")
	}
	if len(m.Labels) > 0 {
		parts = append(parts, "has "+strings.Join(m.Labels, ", "))
	}
	parts = append(parts, fmt.Sprintf("$%.2f", float64(m.MicroUSD)/1e6))
	for _, w := range m.Working {
		parts = append(parts, w.Work+" "+w.Phase)
	}
	if m.Gone {
		parts = []string{"disappeared"}
	}
	return "machine " + m.Name + ": " + strings.Join(parts, "; ")
}

// Slots returns how many slots of a pool the machine has.
func (m Machine) Slots(pool string) int {
	if pool == TestPool {
		return m.Tests
	}
	return m.Agents
}

// USD returns the cost of what the machine did, in dollars.
func (m Machine) USD() float64 { return float64(m.MicroUSD) / 1e6 }

// Busy returns how many slots of a pool are in use.
func (m Machine) Busy(pool string) (n int) {
	for _, w := range m.Working {
		if w.Pool == pool {
			n++
		}
	}
	return n
}

// Takes reports whether the machine takes calls of a kind: it lives, has slots for it, the agent
// and all labels.
func (m Machine) Takes(n Need) bool {
	if m.Gone || m.Stops || m.Slots(n.Pool) == 0 {
		return false
	}
	if n.Agent != "" && len(m.Programs) > 0 && !slices.Contains(m.Programs, n.Agent) {
		return false
	}
	return !slices.ContainsFunc(n.Labels, func(l string) bool { return !slices.Contains(m.Labels, l) })
}

// The pools of calls. They have the names of the pools of the queue.
const (
	AgentPool = "claude"
	TestPool  = "test"
)

// String describes a need for people.
func (n Need) String() string {
	what := "slots of the pool " + n.Pool
	if n.Agent != "" {
		what += ", the agent " + n.Agent
	}
	if len(n.Labels) > 0 {
		what += ", the labels " + strings.Join(n.Labels, ", ")
	}
	return what
}

// A Need is what a call needs of a machine.
type Need struct {
	Pool   string   `json:"pool"`
	Agent  string   `json:"agent,omitempty"`
	Labels []string `json:"labels,omitempty"`
}

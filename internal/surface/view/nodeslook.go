package view

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/project"
	"lockkeeper/internal/project/config"
	"lockkeeper/lock"
	"lockkeeper/store"
)

// Nodes says who takes part.
func (l *Look) Nodes(ctx context.Context) (*Nodes, error) {
	self, err := process.Self()
	if err != nil {
		return nil, err
	}
	c := l.app.Config
	v := &Nodes{Root: l.app.Root.Dir(), Space: l.app.Space, Store: config.Redact(c.Store), Deployment: cmp.Or(c.Deployment, "single-node"), Version: project.Version(), Self: self.Host}
	var entries []lock.RequestInfo
	s, err := l.scene(ctx, "", func(_ *scene, r store.Reader) (err error) {
		entries, err = l.app.Locks.RequestsIn(r)
		return err
	})
	if err != nil {
		return nil, err
	}
	v.Moment, v.Slots = s.Moment, s.slots
	v.Machines = l.machines(s, entries, self.Host)
	v.Enforcement = l.enforcement(ctx)
	v.Checks = l.checks(v.Enforcement)
	return v, nil
}

// machines are those that take part: this one, and those with workers or holders.
func (l *Look) machines(s *scene, entries []lock.RequestInfo, self string) []Machine {
	byName := map[string]*Machine{self: {Name: self, Self: true, Workers: []Worker{}}}
	machine := func(name string) *Machine {
		if byName[name] == nil {
			byName[name] = &Machine{Name: name, Workers: []Worker{}}
		}
		return byName[name]
	}
	for _, w := range s.workers {
		worker := Worker{Worker: w, Life: l.life(w.Process), Items: []string{}}
		for _, it := range s.active {
			if it.Worker == w.ID {
				worker.Items = append(worker.Items, it.ID)
			}
		}
		at := machine(w.Node)
		at.Workers = append(at.Workers, worker)
	}
	for _, e := range entries {
		if e.Process != nil && e.State != waitingState {
			machine(e.Process.Host).Grants++
		}
	}
	var list []Machine
	for _, m := range byName {
		list = append(list, *m)
	}
	slices.SortFunc(list, func(a, b Machine) int {
		if a.Self != b.Self {
			if a.Self {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	})
	return list
}

// checks are what a run needs of this machine.
func (l *Look) checks(e Enforcement) []Check {
	list := []Check{{Name: "sandbox", OK: e.Level != "" && e.Missing == "", Fact: cmp.Or(e.Missing, e.Level)}}
	program := Check{Name: "agent", OK: true, Fact: conduct.AgentTitle(l.app)}
	if err := conduct.CheckAgent(l.app); err != nil {
		program.OK, program.Fact, program.Next = false, err.Error(), "install it, or set agent.command in "+config.FileName
	}
	api := Check{Name: "research by the API", OK: conduct.CanAskAPI(l.app), Fact: "ANTHROPIC_API_KEY is set"}
	if !api.OK {
		api.Fact, api.Next = "ANTHROPIC_API_KEY is not set: people answer topics", "set it, and start anew"
	}
	recovery := Check{Name: "recovery", OK: true, Fact: "no crash had left anything"}
	if r := l.app.Recovery; r != nil {
		recovery.Fact = "what a crash had left was brought to its end"
		if r.Err != nil {
			recovery.OK, recovery.Fact, recovery.Next = false, r.Err.Error(), "lockkeeper gate recover"
		}
	}
	locking := Check{Name: "locking", OK: l.hasLocks(), Fact: "runs use locks and the queue"}
	if !locking.OK {
		locking.Fact, locking.Next = "run.locking is off, the legacy mode: no locks, no queue, no grants", "set run.locking: on in "+config.FileName
	}
	return append(list, program, api, locking, recovery)
}

// nothingElse is for whoever wants to know the moment alone.
func nothingElse(store.Reader) error { return nil }

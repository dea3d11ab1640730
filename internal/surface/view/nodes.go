package view

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/fleet"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/project"
	"lockkeeper/internal/project/config"
	"lockkeeper/lock"
	"lockkeeper/store"
)

// Nodes lists the machines that take part, and the protections of this one.
type Nodes struct {
	Moment
	Root        string      `json:"root"`
	Space       string      `json:"space"`
	Store       string      `json:"store"`
	Deployment  string      `json:"deployment"`
	Version     string      `json:"version"` // version of this program
	Self        string      `json:"self"`    // this machine
	Machines    []Machine   `json:"machines"`
	Enforcement Enforcement `json:"enforcement"`
	Checks      []Check     `json:"checks"` // requirements on this machine
	Slots       []Slots     `json:"slots"`
}

// Machine is a machine with workers or holders.
type Machine struct {
	Name    string   `json:"name"`
	Self    bool     `json:"self"`
	Workers []Worker `json:"workers"`
	Grants  int      `json:"grants"` // grants with a process on this machine

	Runs []fleet.Machine `json:"runs,omitempty"` // its processes that share the calls of the run
}

// Worker is a process that runs items.
type Worker struct {
	lockkeeper.Worker
	Liveness string   `json:"process_state,omitempty"` // alive, dead or unknown
	Items    []string `json:"items"`                   // items that the worker runs
}

// Check is one requirement of a run on this machine.
type Check struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	Fact string `json:"fact"`
	Next string `json:"next,omitempty"`
}

// Nodes returns the machines that take part.
func (rd *Reader) Nodes(ctx context.Context) (*Nodes, error) {
	self, err := process.Self()
	if err != nil {
		return nil, err
	}
	c := rd.project.Config
	v := &Nodes{Root: rd.project.Root.Dir(), Space: rd.project.Space, Store: config.Redact(c.Store), Deployment: cmp.Or(c.Deployment, "single-node"), Version: project.Version(), Self: self.Host}
	var entries []lock.RequestInfo
	s, err := rd.snapshot(ctx, "", func(_ *snapshot, r store.Reader) (err error) {
		entries, err = rd.project.Locks.RequestsIn(r)
		return err
	})
	if err != nil {
		return nil, err
	}
	sharing, err := rd.sharing(ctx, s)
	if err != nil {
		return nil, err
	}
	v.Moment, v.Slots = s.Moment, s.slots
	v.Machines = rd.machines(s, entries, sharing, self.Host)
	v.Enforcement = rd.enforcement(ctx)
	v.Checks = rd.checks(v.Enforcement)
	return v, nil
}

func (rd *Reader) machines(s *snapshot, entries []lock.RequestInfo, sharing []fleet.Machine, self string) []Machine {
	byName := map[string]*Machine{self: {Name: self, Self: true, Workers: []Worker{}}}
	machine := func(name string) *Machine {
		if byName[name] == nil {
			byName[name] = &Machine{Name: name, Workers: []Worker{}}
		}
		return byName[name]
	}
	for _, w := range s.workers {
		worker := Worker{Worker: w, Liveness: rd.liveness(w.Process), Items: []string{}}
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
	for _, m := range sharing {
		at := machine(m.Name)
		at.Runs = append(at.Runs, m)
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

// checks tests the requirements of a run on this machine.
func (rd *Reader) checks(e Enforcement) []Check {
	list := []Check{{Name: "sandbox", OK: e.Level != "" && e.Missing == "", Fact: cmp.Or(e.Missing, e.Level)}}
	program := Check{Name: "agent", OK: true, Fact: conduct.AgentTitle(rd.project)}
	if err := conduct.CheckAgent(rd.project, ""); err != nil {
		program.OK, program.Fact, program.Next = false, lockkeeper.Message(err), lockkeeper.NextStep(err)
	} else if missing := conduct.MissingLogin(rd.project); missing != "" {
		program.OK, program.Fact, program.Next = false, missing, "start the program once and log in"
	}
	allowed := Check{Name: "allowlist", OK: conduct.AllowsFiles(rd.project), Fact: "gate.allowed_write_paths has paths of this codebase"}
	if !allowed.OK {
		allowed.Fact, allowed.Next = "no path of gate.allowed_write_paths exists here: "+strings.Join(rd.project.Config.Gate.AllowedWritePaths, ", "), "change gate.allowed_write_paths in "+config.FileName
	}
	api := Check{Name: "research by the API", OK: conduct.CanAskAPI(rd.project), Fact: "ANTHROPIC_API_KEY is set"}
	if !api.OK {
		api.Fact, api.Next = "ANTHROPIC_API_KEY is not set: people answer topics", "set it and restart"
	}
	recovery := Check{Name: "recovery", OK: true, Fact: "no interrupted landings"}
	if r := rd.project.Recovery; r != nil {
		recovery.Fact = "interrupted landings were recovered"
		if r.Err != nil {
			recovery.OK, recovery.Fact, recovery.Next = false, r.Err.Error(), "lockkeeper gate recover"
		}
	}
	locking := Check{Name: "locking", OK: rd.usesLocks(), Fact: "runs use locks and the queue"}
	if !locking.OK {
		locking.Fact, locking.Next = "run.locking is off, the legacy mode: no locks, no queue, no grants", "set run.locking: on in "+config.FileName
	}
	return append(list, program, allowed, api, locking, recovery)
}

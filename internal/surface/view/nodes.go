package view

import (
	"lockkeeper"
)

// Nodes is who takes part, and what is enforced here.
type Nodes struct {
	Moment
	Root        string      `json:"root"`
	Space       string      `json:"space"`
	Store       string      `json:"store"`
	Deployment  string      `json:"deployment"`
	Version     string      `json:"version"` // of this program
	Self        string      `json:"self"`    // this machine
	Machines    []Machine   `json:"machines"`
	Enforcement Enforcement `json:"enforcement"`
	Checks      []Check     `json:"checks"` // of this machine
	Slots       []Slots     `json:"slots"`
}

// Machine is a machine that takes part.
type Machine struct {
	Name    string   `json:"name"`
	Self    bool     `json:"self"`
	Workers []Worker `json:"workers"`
	Grants  int      `json:"grants"` // whose processes are recorded there
}

// Worker is a process that runs items.
type Worker struct {
	lockkeeper.Worker
	Life  string   `json:"process_state,omitempty"` // alive, dead or unknown
	Items []string `json:"items"`                   // that it runs
}

// Check is one thing that was looked at.
type Check struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	Fact string `json:"fact"`
	Next string `json:"next,omitempty"`
}

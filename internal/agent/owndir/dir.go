package owndir

import (
	"path/filepath"

	"lockkeeper/internal/agent/program"
)

// A Dir is the directory in which an agent's program keeps its own files.
type Dir struct {
	program.Program

	path   string            // the person's directory, absolute; if it is empty, copies start empty
	beside map[string]string // settings from other directories, by their names in a copy
	lock   string
	usable func(path string) bool
}

// Of returns the directory of an agent according to an environment, or nil if the agent has no
// directory. A directory or login for which usable reports false is not used. The argument lock
// is a file that no agent can reach. It is created if needed, and all runs of a user share it.
func Of(agent string, env func(string) (string, bool), lock string, usable func(path string) bool) *Dir {
	p, known := program.ByName(agent)
	if !known {
		return nil
	}
	d := &Dir{Program: p, beside: map[string]string{}, lock: lock, usable: usable}
	var moved bool
	if d.path, moved = p.MovedDir(env); !moved {
		home, _ := env("HOME")
		d.path = filepath.Join(home, p.Dir)
		for _, name := range p.BesideDir {
			d.beside[name] = filepath.Join(home, name)
		}
	}
	if !filepath.IsAbs(d.path) || !usable(d.path) {
		d.path, d.beside = "", nil
	}
	return d
}

package session

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/agent/program"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/project"
)

// An Unchecked is a running agent that works in the codebase and whose hooks have not reported. Its
// writes are not refused.
type Unchecked struct {
	Program string              `json:"program"`
	Process *lockkeeper.Process `json:"process"`
	TTY     string              `json:"tty,omitempty"`
	Why     string              `json:"why,omitempty"` // what disables the agent's hooks; empty: unknown
}

// String describes the agent for people.
func (u Unchecked) String() string {
	text := fmt.Sprintf("%s, process %d", u.Program, u.Process.PID)
	if u.TTY != "" {
		text += " on " + u.TTY
	}
	if u.Why != "" {
		text += ", started with " + u.Why
	}
	return text
}

// Unchecked lists the running agents of this user whose hooks have not reported, oldest first. It
// reads the process table. Agents of runs are left out, because they work in workspaces.
func (b *Registry) Unchecked(ctx context.Context) ([]Unchecked, error) {
	var names []string
	for _, p := range program.All() {
		names = append(names, p.Name)
	}
	running, err := process.Named(names...)
	if err != nil || len(running) == 0 {
		return nil, err
	}
	live, err := b.Live(ctx)
	if err != nil {
		return nil, err
	}
	root := b.app.Root.Dir()
	var list []Unchecked
	for _, r := range running {
		if !isIn(r.Dir, root) || isIn(r.Dir, filepath.Join(root, project.DirName)) || isIn(r.Dir, b.app.WorkspacesDir()) ||
			slices.ContainsFunc(live, func(s Info) bool { return sameProcess(s.Process, &r.Process) }) {
			continue
		}
		list = append(list, Unchecked{Program: r.Program, Process: &r.Process, TTY: r.TTY, Why: program.Unhooked(r.Program, r.Args, r.Env)})
	}
	return list, nil
}

func isIn(file, dir string) bool {
	return file == dir || strings.HasPrefix(file, dir+string(filepath.Separator))
}

// watchEvery limits how often a session reads the process table.
const watchEvery = 5 * time.Second

// Beside returns the unchecked agents that the session has not been told about yet. It returns
// none if the session holds no files.
func (s *Session) Beside(ctx context.Context) (list []Unchecked, err error) {
	now := s.registry.now()
	if s.rec.GrantID == "" || now.Sub(s.rec.Watched) < watchEvery {
		return nil, nil
	}
	s.rec.Watched = now
	all, err := s.registry.Unchecked(ctx)
	for _, u := range all {
		known := func(p lockkeeper.Process) bool { return sameProcess(&p, u.Process) }
		if !slices.ContainsFunc(s.rec.Beside, known) {
			s.rec.Beside = append(s.rec.Beside, *u.Process)
			list = append(list, u)
		}
	}
	return list, err
}

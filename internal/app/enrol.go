package app

import (
	"path/filepath"

	"lockkeeper/internal/enrol"
)

// Enrolment is where the programs of interactive agents are enrolled.
func (a *App) Enrolment() enrol.Site { return enrolment(a.Root.Dir(), a.env) }

// EnrolmentOf is that of the codebase in which a command works, also when it cannot be
// opened.
func EnrolmentOf(s Settings) (enrol.Site, error) {
	base, err := realDir(s.Dir)
	if err != nil {
		return enrol.Site{}, err
	}
	root, _, err := findRoot(base)
	return enrolment(root, s.Env), err
}

func enrolment(root string, env func(string) (string, bool)) enrol.Site {
	return enrol.Site{Root: root, Records: filepath.Join(root, dirName, "enrol"), Env: env}
}

// WorkspacesDir is where runs make copies of this codebase for their agents.
func (a *App) WorkspacesDir() string { return filepath.Join(a.state, "workspaces", a.Space[:8]) }

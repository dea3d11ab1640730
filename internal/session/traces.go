package session

import (
	"path/filepath"

	"lockkeeper"
	"lockkeeper/internal/project"
)

// Traces finds the records of one session in all codebases of this user. Env locates the state
// directory.
type Traces struct {
	Env   func(string) (string, bool)
	Agent string
	ID    string
}

// Open lists the roots of the codebases in which the session holds locks, has calls in progress,
// or runs background commands.
func (t Traces) Open() (roots []string, err error) {
	records, err := t.records()
	for _, r := range records {
		if len(r.Calls) > 0 || len(r.Background) > 0 || r.GrantID != "" {
			roots = append(roots, r.Root)
		}
	}
	return roots, err
}

// Began lists the roots in which a tool call began and has not ended, and the directory in which
// it began. It includes calls that were already treated as ended.
func (t Traces) Began(call string) (roots []string, dir string, err error) {
	records, err := t.records()
	for _, r := range records {
		c, is := r.Calls[call]
		if !is {
			c, is = r.Late[call]
		}
		if !is {
			continue
		}
		if c.Dir != "" {
			dir = c.Dir
		}
		roots = append(roots, r.Root)
	}
	return roots, dir, err
}

// records reads the session's records for all codebases that still exist. It skips unreadable
// records, because the session itself reports them.
func (t Traces) records() (list []record, err error) {
	dirs, err := SessionsDirs(t.Env)
	for _, dir := range dirs {
		r, unread := readRecord(filepath.Join(dir, keyOf(t.Agent, t.ID)+recordEnd))
		if unread != nil || r.Root == "" {
			continue
		}
		if root, gone := project.RootOf(filepath.Join(r.Root, lockkeeper.GitTarget), t.Env); gone == nil && root == r.Root {
			list = append(list, r)
		}
	}
	return list, err
}

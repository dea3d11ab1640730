package session

import (
	"path/filepath"

	"lockkeeper"
	"lockkeeper/internal/app"
)

// Place is a codebase in which a session has something open.
type Place struct {
	Root  string
	Calls map[string]Call // under way, by the host's id
}

// OpenPlaces lists, of all codebases of this user, those in which a session holds something,
// or has calls under way or commands in the background. What cannot be read is left to the
// session itself to complain about, there.
func OpenPlaces(env func(string) (string, bool), agent, id string) (list []Place, err error) {
	dirs, err := app.SessionsDirs(env)
	for _, dir := range dirs {
		r, unread := readRecord(filepath.Join(dir, keyOf(agent, id)+recordEnd))
		if unread != nil || r.Root == "" || len(r.Calls) == 0 && len(r.Behind) == 0 && r.GrantID == "" {
			continue
		}
		if root, gone := app.RootOf(filepath.Join(r.Root, lockkeeper.GitTarget), env); gone == nil && root == r.Root { // else there is nothing to compare
			list = append(list, Place{Root: r.Root, Calls: r.Calls})
		}
	}
	return list, err
}

package git

import (
	"context"
	"strings"
)

// A Selection selects changes that a git command puts into the index, takes out of it, or
// commits. Git reads the paths relative to its directory. Without paths it selects in the whole
// work tree.
type Selection struct {
	Staged    bool // changes in the index
	Tracked   bool // changes of tracked files in the work tree
	Untracked bool
	Ignored   bool
	Unchanged bool   // also tracked files below the paths without changes
	Source    string // Staged means what differs between the index and this commit, instead of the last one
	Paths     []string
}

// Selected lists the absolute paths of the selected changes.
func (g *WorkTree) Selected(ctx context.Context, s Selection) (paths []string, err error) {
	top, err := g.top(ctx)
	if err != nil {
		return nil, err
	}
	options := []string{"--untracked-files=no"}
	if s.Untracked {
		options[0] = "--untracked-files=all"
	}
	if s.Ignored {
		options = append(options, "--ignored=traditional")
	}
	if len(s.Paths) > 0 {
		options = append(append(options, "--"), s.Paths...)
	}
	err = g.status(ctx, top, false, func(state, path string) {
		switch {
		case state == "??", state == "!!", // git lists such paths only if they are selected
			s.Staged && state[0] != ' ',
			s.Tracked && state[1] != ' ' && state[0] != '?':
			paths = append(paths, strings.TrimSuffix(path, "/"))
		}
	}, options...)
	for _, more := range s.others() {
		if err != nil {
			break
		}
		var r Reach
		r, err = g.listed(ctx, append(append(more, "--"), s.Paths...)...)
		paths = append(paths, r.Files...)
	}
	return paths, err
}

// others returns the git commands that list the selected paths of which git status says nothing.
func (s Selection) others() (list [][]string) {
	if s.Unchanged {
		list = append(list, []string{"ls-files", "-z", "--full-name"})
	}
	if s.Staged && s.Source != "" {
		list = append(list, []string{"diff", "--cached", "--name-only", "-z", "--no-renames", "--end-of-options", s.Source})
	}
	return list
}

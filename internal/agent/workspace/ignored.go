package workspace

import (
	"bytes"
	"context"
	"errors"
	"path"
	"path/filepath"
	"strings"

	"lockkeeper/internal/git/gitcmd"
	"lockkeeper/internal/project/generated"
)

// Ignored reports for each change whether it is unimportant: git ignores the path by the
// rules of the shared tree, or it is in a cache that was not copied. An agent's own rules do
// not count.
func (w *Workspace) Ignored(ctx context.Context, changes []Change) ([]bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.begin(); err != nil {
		return nil, err
	}
	ignored := make([]bool, len(changes))
	asked := map[string]map[string]int{} // number of each change, by repository and by path in it
	for i, c := range changes {
		if ignored[i] = w.isInCache(c.Path); ignored[i] {
			continue
		}
		if repo, ok := w.repositoryOf(c.Path); ok {
			name := strings.TrimPrefix(strings.TrimPrefix(c.Path, repo), "/")
			if c.Now != nil && c.Now.Mode.IsDir() || c.Was != nil && c.Was.Mode.IsDir() {
				name += "/" // the slash makes rules for directories apply
			}
			if asked[repo] == nil {
				asked[repo] = map[string]int{}
			}
			asked[repo][name] = i
		}
	}
	for repo, names := range asked {
		found, err := (&repository{work: filepath.Join(w.root, repo)}).ignored(ctx, names)
		if err != nil {
			return nil, err
		}
		for _, name := range found {
			if i, ok := names[name]; ok {
				ignored[i] = true
			}
		}
	}
	return ignored, nil
}

// isInCache reports whether a path is a new directory with the name of a cache, or in one.
func (w *Workspace) isInCache(p string) bool {
	for ; p != "."; p = path.Dir(p) {
		if generated.IsCache(path.Base(p)) && w.base.find(p) == nil {
			return true
		}
	}
	return false
}

func (w *Workspace) repositoryOf(p string) (repo string, ok bool) {
	for p != "." {
		p = path.Dir(p)
		if w.repositories[p] {
			return p, true
		}
	}
	return "", false
}

// ignored lists the paths that git ignores. If git fails, it lists none.
func (r *repository) ignored(ctx context.Context, names map[string]int) ([]string, error) {
	var in, out bytes.Buffer
	for name := range names {
		in.WriteString(name + "\x00")
	}
	err := r.git().Run(ctx, &in, &out, "check-ignore", "-z", "--stdin")
	var refused *gitcmd.Error
	if err != nil && !errors.As(err, &refused) {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\x00"), "\x00"), nil
}

package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"lockkeeper/internal/agent/sandbox"
	"lockkeeper/internal/agent/toolcache"
	"lockkeeper/internal/agent/workspace"
	"lockkeeper/internal/machine/process"
)

// testedAt returns the path of a workspace, and the one at which test and CI commands find it if the
// sandbox has namespaces. It is the same for all workspaces, because tools find what they compiled
// earlier only at the same path.
func testedAt(w *workspace.Workspace) (dir, at string, err error) {
	dir, err = filepath.EvalSymlinks(w.Dir())
	return dir, filepath.Join(filepath.Dir(filepath.Dir(dir)), "tests", "tree"), err
}

// fromWorkspace replaces that path in an output by the path of the workspace.
func fromWorkspace(output string, w *workspace.Workspace) string {
	_, at, err := testedAt(w)
	if err != nil {
		return output
	}
	return strings.ReplaceAll(output, at, w.Dir())
}

// layered adds the layers of a store to the caches of tools. It leaves out a missing cache that no
// layer has, unless the command fills a layer.
func layered(caches []sandbox.Scratch, layers *toolcache.Layers, fills *toolcache.Layer) (list []sandbox.Scratch, err error) {
	for _, c := range caches {
		c.Below = layers.Below(c.Path)
		if fills != nil {
			if c.Changes, err = fills.Changes(c.Path); err != nil {
				return nil, err
			}
		} else if _, err := os.Lstat(c.Path); err != nil && len(c.Below) == 0 {
			continue
		}
		list = append(list, c)
	}
	return list, nil
}

// readOnlyCaches lists the caches of tools that exist and that a command in the sandbox cannot write.
func (p *Pipeline) readOnlyCaches(ctx context.Context, t execution, at site) (list []string, err error) {
	argv := []string{"sh", "-c", `for d; do (: >"$d/.lockkeeper.$$" && rm "$d/.lockkeeper.$$") 2>/dev/null || printf '%s\n' "$d"; done`, "sh"}
	given := len(argv)
	for _, c := range p.reachOf(at.agent).Scratch {
		if _, err := os.Lstat(c.Path); err == nil {
			argv = append(argv, c.Path)
		}
	}
	if !p.opt.Sandbox.On() || len(argv) == given {
		return nil, nil
	}
	name := filepath.Join(at.w.Home(), "read-only")
	out, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	ready, err := p.prepare(ctx, t, at)
	if err == nil {
		var code int
		if code, err = ready.run(ctx, process.Command{Argv: argv, Dir: at.w.Dir(), Env: p.checkEnv(t, at.w), Stdout: out}); err == nil && code != 0 {
			err = fmt.Errorf("cannot try the caches of tools: exit status %d", code)
		}
		err = errors.Join(err, ready.close())
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return nil, err
	}
	said, err := os.ReadFile(name)
	return lastLines(string(said), len(argv)), err
}

package run

import (
	"context"
	"os"
	"path/filepath"

	"lockkeeper/internal/agent/owndir"
	"lockkeeper/internal/agent/sandbox"
	"lockkeeper/internal/agent/workspace"
)

// A Reach lists the files and variables that commands of a run may use in addition to their
// workspace and the system's directories. Paths are absolute. Missing paths are ignored.
type Reach struct {
	Write   []string // the command may change them
	Read    []string
	Scratch []string          // the command may change them; the changes are discarded
	Keep    []string          // variables that are passed on although they contain a credential
	Home    map[string]string // the only files of the home directory
	Own     *owndir.Dir       // the agent's own directory; each call gets a copy; nil: none
}

// reachOf returns the reach of an agent. The name "" is for test and CI commands.
func (p *Pipeline) reachOf(agent string) Reach {
	if p.opt.Reach == nil {
		return Reach{}
	}
	return p.opt.Reach(agent)
}

// confinement returns the files that a command in a workspace may use. The command's private
// directories are in private, which the caller removes.
func (p *Pipeline) confinement(ctx context.Context, w *workspace.Workspace, r Reach, temp, private string) (c sandbox.Confinement, err error) {
	outside, err := w.Outside(ctx)
	if err != nil {
		return c, err
	}
	c = sandbox.Confinement{Private: private}
	for list, paths := range map[*[]string][]string{&c.Write: append([]string{w.Dir(), temp}, r.Write...), &c.Read: append(outside, r.Read...), &c.Scratch: r.Scratch} {
		if *list, err = existing(paths); err != nil {
			return c, err
		}
	}
	for name, text := range r.Home {
		file := filepath.Join(private, "home", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return c, err
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return c, err
		}
	}
	return c, nil
}

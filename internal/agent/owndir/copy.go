package owndir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"lockkeeper/internal/agent/program"
)

// A Copy is the private directory of one call.
type Copy struct {
	Write string   // the directory that the call may change: the copy, and locks that programs make next to it
	Read  []string // directories with the person's settings, to which links in the copy lead

	variable, value string   // tell the program where the copy is
	root            *os.Root // the root of the copy
	login           *login   // nil if no login can be renewed
}

// Open makes a copy below a new directory, which the caller removes after Close. If it does not
// save a login that the call changed, it calls the function tell with the reason.
func (d *Dir) Open(ctx context.Context, at string, tell func(error)) (c *Copy, err error) {
	dir := filepath.Join(at, d.Program.Dir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the agent's own directory: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("make the agent's own directory: %w", err)
	}
	defer func() {
		if err != nil {
			root.Close()
		}
	}()
	c = &Copy{Write: at, variable: d.DirVariable, value: dir, root: root}
	if d.VariableIsHome {
		c.value = at
	}
	sources, err := d.sources()
	if err != nil {
		return nil, err
	}
	for name, source := range sources {
		if err := c.add(name, source, ""); err != nil {
			return nil, fmt.Errorf("copy the agent's settings: %w", err)
		}
	}
	if d.path == "" {
		return c, nil
	}
	c.login, err = d.followLogin(ctx, root, tell)
	return c, err
}

// Environ returns an environment in which the program finds the copy.
func (c *Copy) Environ(env []string) []string {
	others := slices.DeleteFunc(slices.Clone(env), func(v string) bool { return strings.HasPrefix(v, c.variable+"=") })
	return append(others, c.variable+"="+c.value)
}

// Close saves a login that the call renewed. All processes of the call must have ended.
func (c *Copy) Close(ctx context.Context) error {
	if c.login != nil {
		c.login.end(ctx)
	}
	return c.root.Close()
}

// sources lists the settings that exist, by their names in a copy.
func (d *Dir) sources() (map[string]string, error) {
	list := map[string]string{}
	if d.path == "" {
		return list, nil
	}
	entries, err := os.ReadDir(d.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the agent's settings: %w", err)
	}
	for _, e := range entries {
		for _, pattern := range d.Settings {
			if is, _ := filepath.Match(pattern, e.Name()); is { // the patterns are valid
				list[e.Name()] = filepath.Join(d.path, e.Name())
			}
		}
	}
	for name, source := range d.beside {
		list[name] = source
	}
	return list, nil
}

// maxCopied bounds the files that are copied from a directory of settings: some are programs.
const maxCopied = 1 << 20

// add puts settings into the copy. The argument within is the directory of settings that contains
// them, or empty. It skips paths that do not exist, are unreadable, or are neither files nor
// directories.
func (c *Copy) add(name, source, within string) error {
	real, err := filepath.EvalSymlinks(source)
	if err != nil {
		return unlessMissing(err)
	}
	info, err := os.Stat(real)
	switch {
	case err != nil:
		return unlessMissing(err)
	case info.IsDir() && within == "":
		return c.makeDir(name, real)
	case info.IsDir(), info.Mode().IsRegular() && within != "" && info.Size() > maxCopied:
		if !strings.HasPrefix(real, within+"/") { // the link leads out of the directory of settings
			c.Read = append(c.Read, real)
		}
		return c.root.Symlink(real, name)
	case !info.Mode().IsRegular():
		return nil
	}
	text, err := os.ReadFile(real)
	if err != nil {
		return unlessMissing(err)
	}
	return c.root.WriteFile(name, text, info.Mode().Perm()|0o600)
}

// makeDir adds a directory with the files of another one and with links to its subdirectories.
// Programs add files to directories of settings, and subdirectories may be large.
func (c *Copy) makeDir(name, real string) error {
	entries, err := os.ReadDir(real)
	if err != nil {
		return unlessMissing(err)
	}
	if err := c.root.Mkdir(name, 0o700); err != nil {
		return err
	}
	c.Read = append(c.Read, real)
	for _, e := range entries {
		if err := c.add(filepath.Join(name, e.Name()), filepath.Join(real, e.Name()), real); err != nil {
			return err
		}
	}
	return nil
}

// unlessMissing ignores errors for files that the program itself could not find or read.
func unlessMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) {
		return nil
	}
	return err
}

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

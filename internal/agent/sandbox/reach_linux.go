package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// A reach lists the paths that Landlock permits a command to open.
type reach struct {
	read  []string // nil: every path that exists for the command
	write []string // paths to read and write
}

// reachOf returns the reach of a command without namespaces. It also sets up the
// command's home directory.
func reachOf(o order) (reach, error) {
	hidden := systemSecrets()
	to := reach{read: append([]string{"/proc"}, ownProgram()...), write: slices.Clone(o.Write)}
	for _, dir := range systemPaths() {
		to.read = append(to.read, without(dir, hidden)...)
	}
	to.read = append(append(to.read, o.Read...), o.readable()...)
	for _, path := range append(devices, sharedMemory) {
		if _, err := os.Lstat(path); err == nil {
			to.write = append(to.write, path)
		}
	}
	if o.Private == "" {
		return to, nil
	}
	to.write = append(to.write, o.privateHome(), o.privateTemp())
	return to, o.furnishHome()
}

// furnishHome makes the private home directory the home of this process. Links in it
// lead to the listed paths of the real home, where programs expect them.
func (o order) furnishHome() error {
	home := realHome()
	if home == "" {
		return os.Setenv("HOME", o.privateHome())
	}
	named := slices.Concat(o.Read, o.readable(), o.Write)
	for _, path := range outermost(named) {
		if path == home {
			return nil // the home itself is listed
		}
		if !within(path, home) {
			continue
		}
		at := filepath.Join(o.privateHome(), path[len(home):])
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			return fmt.Errorf("make the home directory: %w", err)
		}
		if err := os.Symlink(path, at); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("make the home directory: %w", err)
		}
	}
	return os.Setenv("HOME", o.privateHome())
}

// readable lists the scratch directories that the command reads without overlays. Tools make the
// others again in the private home.
func (o order) readable() (paths []string) {
	home := realHome()
	for _, s := range o.Scratch {
		if s.exists() && !(s.Rebuilt && o.Private != "" && home != "" && within(s.Path, home)) {
			paths = append(paths, s.Path)
		}
	}
	return paths
}

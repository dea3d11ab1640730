package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// named is the reach of a command that has no root of its own: what is named can
// be opened, and nothing else can. Names, sizes and times of other files can be
// seen, which Landlock does not hold.
func named(o order) (reach, error) {
	hidden := systemSecrets()
	to := reach{read: append([]string{"/proc"}, ownProgram()...), write: slices.Clone(o.Write)}
	for _, dir := range systemPaths() {
		to.read = append(to.read, without(dir, hidden)...)
	}
	to.read = append(append(to.read, o.Read...), o.Scratch...)
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

// furnishHome makes the private directory the home of this process. What is named
// in the true home is reached through links, by the names that programs expect.
func (o order) furnishHome() error {
	home := realHome()
	if home == "" {
		return os.Setenv("HOME", o.privateHome())
	}
	named := slices.Concat(o.Read, o.Scratch, o.Write)
	for _, path := range outermost(named) {
		if path == home {
			return nil // the home itself is named
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

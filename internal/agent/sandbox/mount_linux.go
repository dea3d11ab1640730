package sandbox

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"lockkeeper/internal/machine/overlay"
)

// clone makes a mount of a tree, including the mounts in it.
func clone(tree *os.File) (*os.File, error) {
	fd, err := unix.OpenTree(int(tree.Fd()), "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
	if err != nil {
		return nil, fmt.Errorf("clone %s: %w", tree.Name(), err)
	}
	return os.NewFile(uintptr(fd), tree.Name()), nil
}

// newMount makes a mount of a new file system. An option without a value is a flag.
func newMount(kind string, options map[string]string, attr int) (*os.File, error) {
	wrong := func(err error) error { return fmt.Errorf("make a mount of %s: %w", kind, err) }
	fd, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, wrong(err)
	}
	defer unix.Close(fd)
	for key, value := range options {
		set := func() error { return unix.FsconfigSetString(fd, key, value) }
		if value == "" {
			set = func() error { return unix.FsconfigSetFlag(fd, key) }
		}
		if err := set(); err != nil {
			return nil, wrong(err)
		}
	}
	if err := unix.FsconfigCreate(fd); err != nil {
		return nil, wrong(err)
	}
	mount, err := unix.Fsmount(fd, unix.FSMOUNT_CLOEXEC, attr|unix.MOUNT_ATTR_NOSUID)
	if err != nil {
		return nil, wrong(err)
	}
	return os.NewFile(uintptr(mount), kind), nil
}

// newOverlay makes a mount that shows some directories, the first one on top, and keeps changes to
// them in the directory upper of changes.
func newOverlay(lower []string, changes string) (*os.File, error) {
	upper, work, empty := filepath.Join(changes, "upper"), filepath.Join(changes, "work"), filepath.Join(changes, "empty")
	for _, dir := range []string{upper, work, empty} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	if len(lower) == 0 {
		lower = []string{empty}
	}
	info, err := os.Stat(lower[0])
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(upper, info.Mode().Perm()); err != nil { // the overlay shows the mode of this directory
		return nil, err
	}
	return overlay.Stack{Lower: lower, Upper: upper, Work: work}.Mount("")
}

// moveMount attaches a mount at a target.
func moveMount(mount, target *os.File) error {
	err := unix.MoveMount(int(mount.Fd()), "", int(target.Fd()), "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
	if err != nil {
		return fmt.Errorf("mount %s at %s: %w", mount.Name(), target.Name(), err)
	}
	return nil
}

// openPath opens a path with O_PATH and follows no link on the way.
func openPath(path string) (*os.File, error) {
	return openFrom(unix.AT_FDCWD, path, path)
}

// openAt opens a name in a directory with O_PATH. It refuses links.
func openAt(dir *os.File, name string) (*os.File, error) {
	return openFrom(int(dir.Fd()), name, filepath.Join(dir.Name(), name))
}

func openFrom(dir int, name, path string) (*os.File, error) {
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	fd, err := unix.Openat2(dir, name, how)
	if err != nil {
		return nil, wrapPath("open", path, err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

func wrapPath(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &os.PathError{Op: op, Path: path, Err: err}
}

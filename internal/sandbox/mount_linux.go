package sandbox

import (
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// sharedMemory is where programs share memory by name; a sandbox with mounts of
// its own has one of its own.
const sharedMemory = "/dev/shm"

// mountAll makes the file system read-only but for what may be written, hides
// what is hidden, and shows the namespace's own processes. Everything was
// opened by its true name, so a link that is swapped in is refused.
func mountAll(o order) error {
	here, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("find the working directory: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("separate the mounts: %w", err)
	}
	// Clones are made before the rest becomes read-only, and so stay writable.
	var open []*mountPoint
	for _, path := range o.Write {
		m, err := cloneAt(path)
		if err != nil {
			return err
		}
		open = append(open, m)
	}
	readOnly := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &readOnly); err != nil {
		return fmt.Errorf("make everything read-only: %w", err)
	}
	for _, m := range open {
		if err := m.attach(); err != nil {
			return err
		}
	}
	for _, path := range o.Hidden {
		if err := hide(path); err != nil {
			return err
		}
	}
	if err := ownDirectory("/proc", "proc", nil, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOEXEC); err != nil {
		return err
	}
	if o.needsOwnMemory() {
		if err := ownDirectory(sharedMemory, "tmpfs", map[string]string{"mode": "1777"}, 0); err != nil {
			return err
		}
	}
	// The old working directory lies below the new mounts.
	if err := os.Chdir(here); err != nil {
		return fmt.Errorf("go back to the working directory: %w", err)
	}
	return nil
}

// needsOwnMemory says whether there is a place for shared memory that can be
// replaced without covering what may be written.
func (o order) needsOwnMemory() bool {
	info, err := os.Lstat(sharedMemory)
	return err == nil && info.IsDir() && !slices.ContainsFunc(o.Write, func(path string) bool { return within(path, sharedMemory) })
}

// mountPoint is a mount that is not yet in its place.
type mountPoint struct{ place, mount *os.File }

// cloneAt makes a mount of what is at a path, to go there again.
func cloneAt(path string) (*mountPoint, error) {
	place, err := openPath(path)
	if err != nil {
		return nil, err
	}
	mount, err := clone(place)
	if err != nil {
		place.Close()
		return nil, err
	}
	return &mountPoint{place, mount}, nil
}

// attach puts the mount in its place, which uses the mount point up.
func (m *mountPoint) attach() error {
	defer m.place.Close()
	defer m.mount.Close()
	err := unix.MoveMount(int(m.mount.Fd()), "", int(m.place.Fd()), "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
	if err != nil {
		return fmt.Errorf("mount over %s: %w", m.place.Name(), err)
	}
	return nil
}

// ownDirectory mounts a new file system over a directory.
func ownDirectory(path, kind string, options map[string]string, attr int) error {
	place, err := openPath(path)
	if err != nil {
		return err
	}
	mount, err := newMount(kind, options, attr)
	if err != nil {
		place.Close()
		return err
	}
	return (&mountPoint{place, mount}).attach()
}

// hide covers a directory with an empty one, and anything else with the null
// device.
func hide(path string) error {
	place, err := openPath(path)
	if err != nil {
		return err
	}
	mount, err := nothingLike(place)
	if err != nil {
		place.Close()
		return err
	}
	return (&mountPoint{place, mount}).attach()
}

func nothingLike(place *os.File) (*os.File, error) {
	info, err := place.Stat()
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return newMount("tmpfs", map[string]string{"mode": "555", "nr_inodes": "1"}, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOEXEC)
	}
	null, err := openPath(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	return clone(null)
}

// clone makes a mount of a tree, with all that is mounted in it.
func clone(tree *os.File) (*os.File, error) {
	fd, err := unix.OpenTree(int(tree.Fd()), "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
	if err != nil {
		return nil, fmt.Errorf("clone %s: %w", tree.Name(), err)
	}
	return os.NewFile(uintptr(fd), tree.Name()), nil
}

// newMount makes a mount of a new file system.
func newMount(kind string, options map[string]string, attr int) (*os.File, error) {
	wrong := func(err error) error { return fmt.Errorf("make a mount of %s: %w", kind, err) }
	fd, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, wrong(err)
	}
	defer unix.Close(fd)
	for key, value := range options {
		if err := unix.FsconfigSetString(fd, key, value); err != nil {
			return nil, wrong(err)
		}
	}
	if err := unix.FsconfigCreate(fd); err != nil {
		return nil, wrong(err)
	}
	mount, err := unix.Fsmount(fd, unix.FSMOUNT_CLOEXEC, attr|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	if err != nil {
		return nil, wrong(err)
	}
	return os.NewFile(uintptr(mount), kind), nil
}

// openPath opens what a path names, to be pointed at only, and follows no link
// on the way.
func openPath(path string) (*os.File, error) {
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	fd, err := unix.Openat2(unix.AT_FDCWD, path, how)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

package overlay

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// Mount makes a mount of a directory in the merged directory, or of all of it if sub is empty. The
// mount is attached nowhere: the result can be given to move_mount(2). The calling process must have
// the capabilities to mount.
//
// The mount is made in a mount namespace that exists only for this call. So the mounts and the
// working directory of the process stay as they are.
func (s Stack) Mount(sub string) (*os.File, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if sub != "" && !filepath.IsLocal(sub) {
		return nil, fmt.Errorf("overlay: %q is not inside the merged directory", sub)
	}
	var made *os.File
	err := onOwnThread(func() (err error) {
		made, err = s.mount(sub)
		return err
	})
	return made, err
}

// onOwnThread calls act on a thread that ends afterwards.
func onOwnThread(act func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			done <- act()
			return // the thread ends with the goroutine that has locked it
		}
		done <- onOwnThread(act) // the first thread of a process cannot end before the process
		runtime.UnlockOSThread()
	}()
	return <-done
}

// descriptors is the directory in which each open file of this process has a name.
const descriptors = "/proc/self/fd"

// over is the directory on which each mount is made before it is detached. Every system has it.
const over = "/proc"

// mount makes the mount in a new mount namespace of the calling thread.
//
// The options of mount(2) must fit in one page, and some characters in them have a meaning. So the
// directories are opened, and named by the numbers of their descriptors.
func (s Stack) mount(sub string) (*os.File, error) {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return nil, fmt.Errorf("overlay: make a mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("overlay: separate the mounts: %w", err)
	}
	if err := unix.Chdir(descriptors); err != nil {
		return nil, fmt.Errorf("overlay: enter %s: %w", descriptors, err)
	}
	lower, layers, err := openAll(s.Lower)
	defer closeAll(layers)
	if err != nil {
		return nil, err
	}
	flags := uintptr(unix.MS_NOSUID | unix.MS_NODEV)
	options := "userxattr"
	if s.Upper != "" {
		if err := Empty(s.Work); err != nil {
			return nil, fmt.Errorf("overlay: empty the work directory: %w", err)
		}
		changes, dirs, err := openAll([]string{s.Upper, s.Work})
		defer closeAll(dirs)
		if err != nil {
			return nil, err
		}
		options += ",volatile,upperdir=" + changes[0] + ",workdir=" + changes[1]
	} else {
		flags |= unix.MS_RDONLY
		empty, err := mountEmpty() // the kernel requires at least two directories
		if err != nil {
			return nil, err
		}
		defer empty.Close()
		lower = append(lower, fmt.Sprint(empty.Fd()))
	}
	if err := unix.Mount("overlay", over, "overlay", flags, options+",lowerdir="+strings.Join(lower, ":")); err != nil {
		return nil, fmt.Errorf("overlay: mount: %w", err)
	}
	_, tops, err := openAll([]string{filepath.Join(over, sub)})
	defer closeAll(tops)
	if err != nil {
		return nil, fmt.Errorf("open %q in the merged directory: %w", sub, err)
	}
	fd, err := unix.OpenTree(int(tops[0].Fd()), "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	if err != nil {
		return nil, fmt.Errorf("overlay: detach the mount: %w", err)
	}
	return os.NewFile(uintptr(fd), "overlay"), nil
}

// openAll opens directories and returns their names in the directory of descriptors.
func openAll(paths []string) (names []string, dirs []*os.File, err error) {
	for _, path := range paths {
		fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
		if err != nil {
			return nil, dirs, fmt.Errorf("overlay: %w", &os.PathError{Op: "open", Path: path, Err: err})
		}
		names = append(names, fmt.Sprint(fd))
		dirs = append(dirs, os.NewFile(uintptr(fd), path))
	}
	return names, dirs, nil
}

func closeAll(dirs []*os.File) {
	for _, dir := range dirs {
		dir.Close()
	}
}

// mountEmpty mounts an empty directory and opens it.
func mountEmpty() (*os.File, error) {
	if err := unix.Mount("tmpfs", over, "tmpfs", unix.MS_RDONLY, "size=4k"); err != nil {
		return nil, fmt.Errorf("overlay: mount an empty directory: %w", err)
	}
	fd, err := unix.Open(over, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("overlay: open an empty directory: %w", err)
	}
	return os.NewFile(uintptr(fd), over), nil
}

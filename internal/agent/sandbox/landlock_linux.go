package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Landlock denies these rights unless a rule permits them. No rule permits making devices,
// through which root could reach its disks.
const (
	readFile  = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_EXECUTE
	readDir   = readFile | unix.LANDLOCK_ACCESS_FS_READ_DIR
	writeFile = unix.LANDLOCK_ACCESS_FS_WRITE_FILE
	writeDir  = writeFile | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SYM
	makeDevice = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
)

// A rules is a ruleset under construction, with the rights that this version of Landlock supports
// for files and directories.
type rules struct {
	*os.File
	readFile, readDir   uint64
	writeFile, writeDir uint64
	ioctl               uint64 // rights for devices
}

// landlockVersion returns the version of Landlock in the kernel, or 0 if it has none.
func landlockVersion() int {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(version)
}

// landlock restricts the calling thread to a reach, and to its standard files.
func landlock(version int, to reach) error {
	r, err := newRules(version, to.read != nil)
	if err != nil {
		return err
	}
	defer r.Close()
	for _, path := range to.read {
		if err := r.permitPath(path, r.readFile, r.readDir); err != nil {
			return err
		}
	}
	for _, path := range to.write {
		if err := r.permitPath(path, r.readFile|r.writeFile, r.readDir|r.writeDir); err != nil {
			return err
		}
	}
	for _, given := range []*os.File{os.Stdin, os.Stdout, os.Stderr} {
		if err := r.permitGiven(given); err != nil {
			return err
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, r.Fd(), 0, 0); errno != 0 {
		return fmt.Errorf("apply rules: %w", errno)
	}
	return nil
}

func newRules(version int, reads bool) (*rules, error) {
	r := &rules{writeFile: writeFile, writeDir: writeDir}
	if reads {
		r.readFile, r.readDir = readFile, readDir
	}
	if version >= 2 {
		r.writeDir |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if version >= truncates {
		r.writeFile |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if version >= 5 {
		r.ioctl = unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	r.writeDir |= r.writeFile
	attr := unix.LandlockRulesetAttr{Handled_access_fs: r.readDir | r.writeDir | r.ioctl | makeDevice}
	if version >= scopes {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return nil, fmt.Errorf("make rules: %w", errno)
	}
	r.File = os.NewFile(fd, "landlock")
	return r, nil
}

// permitPath adds a rule for a path, with the rights for its kind. For device files, which every
// command may use, it also permits ioctls.
func (r *rules) permitPath(path string, file, dir uint64) error {
	f, err := openPath(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case path == pseudoTerminals:
		return r.permit(f, dir|r.ioctl)
	case info.IsDir():
		return r.permit(f, dir)
	case info.Mode()&fs.ModeCharDevice != 0:
		return r.permit(f, file|r.ioctl)
	}
	return r.permit(f, file)
}

// permitGiven lets the command open one of its standard files again, as /dev/stdout.
func (r *rules) permitGiven(given *os.File) error {
	info, err := given.Stat()
	if errors.Is(err, unix.EBADF) {
		return nil // the file is closed
	}
	if err != nil {
		return err
	}
	flags, err := unix.FcntlInt(given.Fd(), unix.F_GETFL, 0)
	if err != nil {
		return fmt.Errorf("inspect %s: %w", given.Name(), err)
	}
	if !info.Mode().IsRegular() {
		return nil // devices have their own rules; pipes and sockets need none
	}
	switch flags & unix.O_ACCMODE {
	case unix.O_RDONLY:
		return r.permit(given, r.readFile&^unix.LANDLOCK_ACCESS_FS_EXECUTE)
	case unix.O_WRONLY:
		return r.permit(given, r.writeFile)
	}
	return r.permit(given, r.writeFile|r.readFile&^unix.LANDLOCK_ACCESS_FS_EXECUTE)
}

func (r *rules) permit(f *os.File, rights uint64) error {
	if rights == 0 {
		return nil
	}
	attr := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(f.Fd())}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, r.Fd(), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&attr)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("permit %s: %w", f.Name(), errno)
	}
	return nil
}

package tree

import (
	"errors"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// diskFolds reports whether the whole disk folds case. It changes the case of a name in the
// root to one that the root does not list, and looks that up: a disk that folds case finds
// it. If no name has a letter to change, the kind of disk decides.
func diskFolds(fd int) (bool, error) {
	names, err := list(fd)
	if err != nil {
		return false, err
	}
	for _, name := range names {
		other, ok := swapCase(name)
		if !ok || slices.Contains(names, other) {
			continue
		}
		if _, err := statAt(fd, name); err != nil {
			continue // the file was removed meanwhile
		}
		_, err := statAt(fd, other)
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return false, err
		}
		return err == nil, nil
	}
	return kindFolds(fd)
}

// list reads the names in the directory fd.
func list(fd int) ([]string, error) {
	dir, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(dir), ".")
	defer file.Close()
	return file.Readdirnames(-1)
}

// openDir opens a directory for lookups, not for listing: O_PATH needs only search
// permission.
const openDir = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// Constants of linux/fs.h and linux/magic.h that x/sys does not have.
const (
	flagCasefold = 0x40000000
	magicNTFS    = 0x5346544e
	magicNTFS3   = 0x7366746e
	magicHFS     = 0x4244
	magicHFSPlus = 0x482b
	magicHFSX    = 0x4858
)

func kindFolds(fd int) (bool, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return false, err
	}
	return slices.Contains([]int64{unix.MSDOS_SUPER_MAGIC, unix.EXFAT_SUPER_MAGIC, magicNTFS, magicNTFS3,
		magicHFS, magicHFSPlus, magicHFSX, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.SMB_SUPER_MAGIC},
		int64(uint32(st.Type))), nil
}

// dirFolds reads the flag with which ext4, f2fs and tmpfs fold case in one directory
// and in directories created below it.
func dirFolds(fd int) (bool, error) {
	dir, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false, err
	}
	defer unix.Close(dir)
	flags, err := unix.IoctlGetUint32(dir, unix.FS_IOC_GETFLAGS)
	switch {
	case errors.Is(err, unix.ENOTTY), errors.Is(err, unix.ENOTSUP), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EINVAL):
		return false, nil // the disk has no such flags
	case err != nil:
		return false, err
	}
	return flags&flagCasefold != 0, nil
}

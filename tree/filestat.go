package tree

import "golang.org/x/sys/unix"

// A fileStat describes one name without following links.
type fileStat struct {
	mode  uint32
	dev   uint64
	mount uint64 // 0 if the kernel does not report it
	ino   uint64
	links uint64
}

func (e fileStat) isDir() bool     { return e.mode&unix.S_IFMT == unix.S_IFDIR }
func (e fileStat) isLink() bool    { return e.mode&unix.S_IFMT == unix.S_IFLNK }
func (e fileStat) isRegular() bool { return e.mode&unix.S_IFMT == unix.S_IFREG }

func (e fileStat) sameFile(f fileStat) bool { return e.dev == f.dev && e.ino == f.ino }

// sameDevice compares a root with something in it. It ignores the device of a file
// if the mount is known: overlay file systems report the devices of lower layers for
// files, while directories show where a subvolume begins.
func (e fileStat) sameDevice(f fileStat) bool {
	if f.mount != 0 && !f.isDir() {
		return e.mount == f.mount
	}
	return e.mount == f.mount && e.dev == f.dev
}

func statAt(fd int, name string) (fileStat, error) { return statx(fd, name, unix.AT_SYMLINK_NOFOLLOW) }

func statFD(fd int) (fileStat, error) { return statx(fd, "", unix.AT_EMPTY_PATH) }

func statx(fd int, name string, flags int) (fileStat, error) {
	const want = unix.STATX_TYPE | unix.STATX_MODE | unix.STATX_NLINK | unix.STATX_INO | unix.STATX_MNT_ID
	var st unix.Statx_t
	if err := unix.Statx(fd, name, flags, want, &st); err != nil {
		return fileStat{}, err
	}
	e := fileStat{mode: uint32(st.Mode), dev: unix.Mkdev(st.Dev_major, st.Dev_minor), ino: st.Ino, links: uint64(st.Nlink)}
	if st.Mask&unix.STATX_MNT_ID != 0 {
		e.mount = st.Mnt_id
	}
	return e, nil
}

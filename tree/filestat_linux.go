package tree

import "golang.org/x/sys/unix"

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

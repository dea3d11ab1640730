//go:build unix && !linux

package tree

import "golang.org/x/sys/unix"

func statAt(fd int, name string) (fileStat, error) {
	var st unix.Stat_t
	err := unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return fileStatOf(&st), err
}

func statFD(fd int) (fileStat, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	return fileStatOf(&st), err
}

func fileStatOf(st *unix.Stat_t) fileStat {
	return fileStat{mode: uint32(st.Mode), dev: uint64(st.Dev), ino: uint64(st.Ino), links: uint64(st.Nlink)}
}

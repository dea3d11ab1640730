//go:build unix && !linux

package tree

import "golang.org/x/sys/unix"

func statAt(fd int, name string) (entry, error) {
	var st unix.Stat_t
	err := unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return entryOf(&st), err
}

func statFD(fd int) (entry, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	return entryOf(&st), err
}

func entryOf(st *unix.Stat_t) entry {
	return entry{mode: uint32(st.Mode), dev: uint64(st.Dev), ino: uint64(st.Ino), links: uint64(st.Nlink)}
}

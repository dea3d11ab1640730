//go:build unix

package tree

import "golang.org/x/sys/unix"

// entry is what the disk says of one name, links not followed.
type entry struct {
	mode  uint32
	dev   uint64
	mount uint64 // 0 where the system does not tell
	ino   uint64
	links uint64
}

func (e entry) isDir() bool     { return e.mode&unix.S_IFMT == unix.S_IFDIR }
func (e entry) isLink() bool    { return e.mode&unix.S_IFMT == unix.S_IFLNK }
func (e entry) isRegular() bool { return e.mode&unix.S_IFMT == unix.S_IFREG }

func (e entry) sameFile(f entry) bool { return e.dev == f.dev && e.ino == f.ino }

// sameDevice compares a root with something in it. The device of a file is not
// asked where the mount is known: overlay file systems give their files devices
// of the layers below, while directories show where a subvolume begins.
func (e entry) sameDevice(f entry) bool {
	if f.mount != 0 && !f.isDir() {
		return e.mount == f.mount
	}
	return e.mount == f.mount && e.dev == f.dev
}

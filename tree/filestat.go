//go:build unix

package tree

import "golang.org/x/sys/unix"

// A fileStat describes one name without following links.
type fileStat struct {
	mode  uint32
	dev   uint64
	mount uint64 // 0 if the system does not report it
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

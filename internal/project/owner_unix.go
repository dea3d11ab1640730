//go:build unix

package project

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownerOf returns the id of the user that owns a file, if it is known.
func ownerOf(path string) (uid int, known bool) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(stat.Uid), true
}

func mayWrite(path string) bool { return unix.Access(path, unix.R_OK|unix.W_OK) == nil }

//go:build unix && !linux

package tree

import (
	"runtime"

	"golang.org/x/sys/unix"
)

const openDir = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// kindFolds assumes the default: macOS disks fold case.
func kindFolds(int) (bool, error) { return runtime.GOOS == "darwin" || runtime.GOOS == "ios", nil }

func dirFolds(int) (bool, error) { return false, nil }

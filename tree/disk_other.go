//go:build unix && !linux

package tree

import (
	"runtime"

	"golang.org/x/sys/unix"
)

const openDir = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// kindFolds assumes the usual: macOS disks fold unless made otherwise.
func kindFolds(int) (bool, error) { return runtime.GOOS == "darwin" || runtime.GOOS == "ios", nil }

func dirFolds(int) (bool, error) { return false, nil }

package sqlstore

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/internal/machine/boot"
	"lockkeeper/internal/machine/filelock"
	"lockkeeper/store"
)

// monotonic reads the monotonic clock, which all processes of the host share and no program can
// set. It does not advance while the host is suspended.
func monotonic() store.Moment {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(fmt.Sprintf("CLOCK_MONOTONIC: %v", err)) // cannot happen: every kernel has this clock
	}
	return store.Moment{Lease: lockkeeper.Instant(ts.Nano()), Wall: time.Now()}
}

// refuseShiftedTime refuses to run in a time namespace with another monotonic clock. The leases
// of other processes would look expired there.
func refuseShiftedTime() error {
	err := boot.Shifted()
	if errors.Is(err, boot.ErrShifted) {
		return &lockkeeper.StoreError{Store: "SQLite", Reason: "this process runs in a time namespace of its own, where leases cannot be compared with those of others",
			Next: "run it outside, or use PostgreSQL"}
	}
	if err != nil {
		return fmt.Errorf("time namespace: %w", err)
	}
	return nil
}

// incarnation identifies the physical file by its inode number and birth time, which no copy
// shares. It ignores the device number, which depends on the order in which disks are mounted.
func incarnation(f *os.File) (string, error) {
	var st unix.Statx_t
	if err := unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_INO|unix.STATX_BTIME, &st); err != nil {
		return "", &os.PathError{Op: "statx", Path: f.Name(), Err: err}
	}
	if st.Mask&unix.STATX_BTIME == 0 {
		return fmt.Sprint(st.Ino), nil
	}
	return fmt.Sprintf("%d:%d.%09d", st.Ino, st.Btime.Sec, st.Btime.Nsec), nil
}

func refuseNetworkDisk(dir string) error {
	name, err := filelock.NetworkDisk(dir)
	if err != nil {
		return openProblem(dir, err)
	}
	return refuseDisk(dir, name)
}

// diskFull reports whether the disk of a file is full. The driver reports a full disk and a
// broken one as the same I/O error.
func diskFull(path string) bool { return freeSpace(path) < 1<<17 }

// freeSpace returns how many bytes can still be written to the disk of a file, or the maximum
// if the disk does not say.
func freeSpace(path string) uint64 {
	var st unix.Statfs_t
	if unix.Statfs(filepath.Dir(path), &st) != nil {
		return math.MaxUint64
	}
	return st.Bavail * uint64(st.Bsize)
}

// refuseDisk refuses a network file system. An empty name means a local one.
func refuseDisk(dir, name string) error {
	if name == "" {
		return nil
	}
	return &lockkeeper.StoreError{Store: dir, Reason: "it lies on a network file system (" + name + "), where SQLite cannot keep several machines apart",
		Next: "keep the database on a local disk with --store, or use PostgreSQL"}
}

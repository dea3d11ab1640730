package sqlstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper"
)

// monotonic reads the clock that every process of this host shares and that no
// one sets: it stands still while the host sleeps.
func monotonic() lockkeeper.Moment {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(fmt.Sprintf("CLOCK_MONOTONIC: %v", err)) // the kernel always has it
	}
	return lockkeeper.Moment{Lease: lockkeeper.Instant(ts.Nano()), Wall: time.Now()}
}

// refuseShiftedTime refuses a time namespace of its own: the monotonic clock
// reads differently there, so leases of other processes would look past.
func refuseShiftedTime() error {
	b, err := os.ReadFile("/proc/self/timens_offsets")
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a kernel without them
	}
	if err != nil {
		return fmt.Errorf("time namespace: %w", err)
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) == 3 && (f[1] != "0" || f[2] != "0") {
			return &lockkeeper.StoreError{Store: "SQLite", Reason: "this process runs in a time namespace of its own, where leases cannot be compared with those of others",
				Next: "run it outside, or use PostgreSQL"}
		}
	}
	return nil
}

func bootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("boot id: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

// incarnation identifies the physical file: by its number and the time it was
// born, which no copy shares. The number of its device would change with the
// order in which disks are mounted.
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

// networkDisks are file systems on which several machines may open one file
// while its locks and shared memory work on one machine only.
func networkDisks() map[int64]string {
	return map[int64]string{
		unix.NFS_SUPER_MAGIC:   "NFS",
		unix.SMB_SUPER_MAGIC:   "SMB",
		unix.SMB2_SUPER_MAGIC:  "SMB",
		unix.CIFS_SUPER_MAGIC:  "CIFS",
		unix.AFS_SUPER_MAGIC:   "AFS",
		unix.AFS_FS_MAGIC:      "AFS",
		unix.CODA_SUPER_MAGIC:  "Coda",
		unix.CEPH_SUPER_MAGIC:  "Ceph",
		unix.V9FS_MAGIC:        "9P",
		unix.FUSE_SUPER_MAGIC:  "FUSE",
		unix.OCFS2_SUPER_MAGIC: "OCFS2",
		0x0BD00BD0:             "Lustre",
		0x47504653:             "GPFS",
		0x19830326:             "BeeGFS",
		0xaad7aaea:             "PanFS",
	}
}

func refuseNetworkDisk(dir string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return openProblem(dir, err)
	}
	return refuseDisk(dir, int64(st.Type))
}

// diskFull tells a full disk from a broken one: the driver calls both an
// input/output error.
func diskFull(path string) bool {
	var st unix.Statfs_t
	err := unix.Statfs(filepath.Dir(path), &st)
	return err == nil && st.Bavail*uint64(st.Bsize) < 1<<17
}

func refuseDisk(dir string, magic int64) error {
	name, ok := networkDisks()[magic]
	if !ok {
		return nil
	}
	return &lockkeeper.StoreError{Store: dir, Reason: "it lies on a network file system (" + name + "), where SQLite cannot keep several machines apart",
		Next: "keep the database on a local disk with --store, or use PostgreSQL"}
}

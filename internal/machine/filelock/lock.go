package filelock

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func Wait(f *os.File) error { return flock(f, unix.LOCK_EX) }

// Share waits for the lock, shared with other holders of a shared lock.
func Share(f *os.File) error { return flock(f, unix.LOCK_SH) }

// Try acquires the exclusive lock. It returns false if another holder has the lock.
func Try(f *os.File) (bool, error) { return try(f, unix.LOCK_EX) }

// TryShare acquires the lock, shared with other holders of a shared lock. It returns false if another
// holder has it exclusively.
func TryShare(f *os.File) (bool, error) { return try(f, unix.LOCK_SH) }

// Held reports whether another process holds the lock exclusively. It acquires nothing.
func Held(f *os.File) (bool, error) {
	if free, err := TryShare(f); err != nil || !free {
		return err == nil, err
	}
	return false, Unlock(f)
}

func try(f *os.File, how int) (bool, error) {
	err := flock(f, how|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// Await waits like Wait until the context ends. If the context ends first, it returns false
// without an error, and calls leave, which must close the file, when the wait is over.
func Await(ctx context.Context, f *os.File, leave func()) (bool, error) {
	acquired := make(chan error)
	go func() {
		err := Wait(f)
		select {
		case acquired <- err:
		case <-ctx.Done():
			leave()
		}
	}()
	select {
	case err := <-acquired:
		return err == nil, err
	case <-ctx.Done():
		return false, nil
	}
}

// Unlock releases a lock. Closing the file is not enough: a child process that is being
// started has a copy of the descriptor for a moment.
func Unlock(f *os.File) error { return flock(f, unix.LOCK_UN) }

func flock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// NetworkDisks returns the file systems, by their type in statfs(2), on which several machines
// may open one file but locks work only within one machine.
func NetworkDisks() map[int64]string {
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

// NetworkDisk returns the name of the network file system of a directory, or ""
// if it is on a local one.
func NetworkDisk(dir string) (string, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return "", &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return NetworkDisks()[int64(st.Type)], nil
}

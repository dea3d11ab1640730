package filelock

import (
	"os"

	"golang.org/x/sys/unix"
)

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

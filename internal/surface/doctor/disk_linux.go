package doctor

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper/internal/machine/filelock"
)

// leastFree is the disk space that stages and kept originals should have.
const leastFree = 256 << 20

// fileSystem checks the features of the file system that the gate and the store need.
func (x *examination) fileSystem(dir string, storeIsThere bool) {
	const name = "file system"
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		x.trouble(name, &os.PathError{Op: "statfs", Path: dir, Err: err})
		return
	}
	ok := true
	wrong := func(fact, next string) {
		ok = false
		x.note(name, false, fact, next)
	}
	if kind := filelock.NetworkDisks()[int64(s.Type)]; kind != "" && storeIsThere {
		wrong(dir+" is on "+kind+", where file locks are unreliable for SQLite", "use PostgreSQL (lockkeeper init --store postgres://…), or move the codebase to a local disk")
	}
	if free := s.Bavail * uint64(s.Bsize); free < leastFree {
		wrong(fmt.Sprintf("only %d MiB of disk space are free", free>>20), "free disk space")
	}
	err := probeFile(dir, func(one string) error {
		info, err := os.Stat(one)
		if err != nil {
			return err
		}
		if apart := time.Since(info.ModTime()).Abs(); apart > drift {
			wrong(fmt.Sprintf("the clocks of the file system and of this machine differ by %s", apart.Round(time.Millisecond)), "synchronize both with NTP")
		}
		return probeFile(dir, func(other string) error {
			if err := unix.Renameat2(unix.AT_FDCWD, one, unix.AT_FDCWD, other, unix.RENAME_EXCHANGE); err != nil {
				return &os.LinkError{Op: "exchange", Old: one, New: other, Err: err}
			}
			return nil
		})
	})
	if exchange := (*os.LinkError)(nil); errors.As(err, &exchange) {
		x.trouble(name, err)
		return
	}
	if err != nil {
		x.failed = true
		x.note(name, false, err.Error(), writable(dir, err))
		return
	}
	if ok {
		x.note(name, true, "exchanges files atomically, and has enough space", "")
	}
}

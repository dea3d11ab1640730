package doctor

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper/internal/machine/filelock"
)

// leastFree is how much room there should be for stages and originals.
const leastFree = 256 << 20

// fileSystem tries what the gate needs of the disk, and whether the store may be there.
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
		wrong(dir+" is on "+kind+", where SQLite cannot rely on locks", "keep the locks in PostgreSQL (lockkeeper init --store postgres://…), or the codebase on a disk of this machine")
	}
	if free := s.Bavail * uint64(s.Bsize); free < leastFree {
		wrong(fmt.Sprintf("%d MiB are free for what is on its way and what is kept", free>>20), "make room")
	}
	err := probeFile(dir, func(one string) error {
		info, err := os.Stat(one)
		if err != nil {
			return err
		}
		if apart := time.Since(info.ModTime()).Abs(); apart > drift {
			wrong(fmt.Sprintf("its clock and this machine's are %s apart", apart.Round(time.Millisecond)), "set both by NTP")
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
		x.note(name, true, "files can be exchanged in one step, and there is room", "")
	}
}

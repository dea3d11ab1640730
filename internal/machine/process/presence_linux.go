package process

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/internal/machine/filelock"
)

// presenceDir, in the directory of a host, has a file for each running command. Its supervisor
// and its keeper lock the file, and the kernel unlocks it when both are gone. A lock on a local
// disk is visible in every PID namespace of the machine, also in those with another boot id.
//
// The command itself never has the file open, so none of its processes can hold the lock. A
// keeper that has ended all processes writes presenceEnded into the file.
const presenceDir = "running"

// presenceEnded is the content of the file when no process of the command is left.
const presenceEnded = "ended\n"

// presenceRetention is how long an unlocked file stays for recovery.
const presenceRetention = 7 * 24 * time.Hour

// presence is the file of one command.
type presence struct{ file *os.File }

// newPresence creates and locks the file of a command. It returns nil if a lock proves
// nothing, such as on a network disk. Then only the lease decides for processes that cannot
// see this one.
func newPresence(dir string) *presence {
	if dir == "" || !local(dir) {
		return nil
	}
	dir = filepath.Join(dir, presenceDir)
	if os.Mkdir(dir, 0o755) != nil && !isDir(dir) {
		return nil
	}
	clearPresences(dir)
	f, err := os.OpenFile(filepath.Join(dir, rand.Text()), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil
	}
	if alone, err := filelock.Try(f); err != nil || !alone {
		os.Remove(f.Name())
		f.Close()
		return nil
	}
	return &presence{f}
}

// clearPresences removes old files that crashes left.
func clearPresences(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || time.Since(info.ModTime()) < presenceRetention {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if f, err := os.Open(path); err == nil {
			if held, err := filelock.Held(f); err == nil && !held {
				os.Remove(path)
			}
			f.Close()
		}
	}
}

// name returns the presence name for the record of the process, or "" if there is none.
func (p *presence) name() string {
	if p == nil {
		return ""
	}
	return filepath.Base(p.file.Name())
}

// remove removes the file before it unlocks it: an unlocked file means that supervisor and
// keeper were killed, or that the keeper ended everything after its supervisor was killed.
func (p *presence) remove() {
	if p != nil {
		os.Remove(p.file.Name())
		p.file.Close()
	}
}

// close leaves the lock to the keeper.
func (p *presence) close() {
	if p != nil {
		p.file.Close()
	}
}

// shown returns the liveness that the presence of a process proves.
func (h *Host) shown(p lockkeeper.Process) lockkeeper.Liveness {
	if h.dir == "" || p.Presence == "" || filepath.Base(p.Presence) != p.Presence || !local(h.dir) {
		return lockkeeper.ProcessUnknown
	}
	f, err := os.Open(filepath.Join(h.dir, presenceDir, p.Presence))
	if err != nil {
		return lockkeeper.ProcessUnknown
	}
	defer f.Close()
	held, err := filelock.Held(f)
	if err != nil {
		return lockkeeper.ProcessUnknown
	}
	if held {
		return lockkeeper.ProcessAlive
	}
	text := make([]byte, len(presenceEnded))
	n, err := f.ReadAt(text, 0)
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil || st.Nlink == 0 || n != len(text) || err != nil || string(text) != presenceEnded {
		return lockkeeper.ProcessUnknown
	}
	return lockkeeper.ProcessDead
}

// forget removes the presence of a process whose work has ended.
func (h *Host) forget(p lockkeeper.Process) error {
	if h.dir == "" || p.Presence == "" || filepath.Base(p.Presence) != p.Presence {
		return nil
	}
	err := os.Remove(filepath.Join(h.dir, presenceDir, p.Presence))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

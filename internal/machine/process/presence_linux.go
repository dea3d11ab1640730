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

// presenceDir is where commands that run are shown to be there, below the
// directory of a host: a file for each, which its supervisor and its keeper have
// locked. The kernel unlocks it when both are gone. A lock on a local disk is seen
// from every PID namespace of the machine, whatever boot id it is shown.
//
// The command itself never has the file open, so nothing that it starts can keep
// the lock. A keeper that has ended all writes so into the file.
const presenceDir = "running"

// presenceEnded is what the file says when nothing of the command is left.
const presenceEnded = "ended\n"

// keepPresence is how long a file that nobody has locked is kept for recovery.
const keepPresence = 7 * 24 * time.Hour

// presence is the file of one command.
type presence struct{ file *os.File }

// newPresence makes and locks the file of a command. It returns nil where no lock
// proves anything, such as on a network disk; then the lease alone decides for
// those who cannot see the process.
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

// clearPresences removes files that crashes left long ago.
func clearPresences(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || time.Since(info.ModTime()) < keepPresence {
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

// name is what the record of the process holds; empty for none.
func (p *presence) name() string {
	if p == nil {
		return ""
	}
	return filepath.Base(p.file.Name())
}

// remove removes the file before it unlocks it: a file that is there and not
// locked means that supervisor and keeper were killed, or that the keeper has ended
// everything after its supervisor was.
func (p *presence) remove() {
	if p != nil {
		os.Remove(p.file.Name())
		p.file.Close()
	}
}

// close lets the keeper alone have the lock.
func (p *presence) close() {
	if p != nil {
		p.file.Close()
	}
}

// shown says what the presence of a process proves, if there is one here.
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

// forget removes the presence of a process whose work was seen to end.
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

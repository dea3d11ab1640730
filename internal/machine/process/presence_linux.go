package process

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/internal/machine/boot"
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

// presence is the locked file of one command (presenceDir).
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

// close closes the file in this process. The keeper still holds the lock.
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
	switch {
	case unix.Fstat(int(f.Fd()), &st) != nil || st.Nlink == 0: // the command ended meanwhile
		return lockkeeper.ProcessUnknown
	case n == len(text) && err == nil && string(text) == presenceEnded, h.namespaceGone(p):
		return lockkeeper.ProcessDead
	}
	return lockkeeper.ProcessUnknown
}

// namespaceGone reports whether the PID namespace of a process of this machine and boot is gone, as after the restart
// of a container: the supervisor and the keeper are dead, and no process that is visible here is in that namespace. The
// kernel kills all processes of a namespace with its first one.
func (h *Host) namespaceGone(p lockkeeper.Process) bool {
	if p.Host != h.self.Host || p.Boot != h.self.Boot || p.PIDNS == "" || h.sees(p) {
		return false
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return false
	}
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		status, err := os.ReadFile("/proc/" + e.Name() + "/status")
		if err != nil { // the process is gone, or hidden
			continue
		}
		_, numbers, _ := strings.Cut(string(status), "\nNSpid:")
		numbers, _, _ = strings.Cut(numbers, "\n")
		if len(strings.Fields(numbers)) < 2 { // it is in the namespace of this process
			continue
		}
		if ns, err := os.Readlink("/proc/" + e.Name() + "/ns/pid"); ns == p.PIDNS || err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	return true
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

// bootsDir is the directory, below that of a host, with a note for each boot that used it. The
// file has the name of the boot id and contains the start time of the boot.
//
// A process of another boot died in a restart of this machine under two conditions: its boot used
// the same directory of the same local disk, and this boot started after the process. A container
// with another boot id fails the second condition, a machine with a copied machine id the first.
const bootsDir = "boots"

// bootRetention is how long the note of a boot stays.
const bootRetention = 90 * 24 * time.Hour

// noteBoot notes this boot. If it cannot, such as on a network disk, a later boot has no
// proof of a restart, and leases decide.
func (h *Host) noteBoot() {
	path := filepath.Join(h.dir, bootsDir, h.self.Boot)
	if _, err := os.Lstat(path); err == nil || !local(h.dir) {
		return
	}
	at, err := boot.Started()
	if err != nil || os.Mkdir(filepath.Dir(path), 0o755) != nil && !isDir(filepath.Dir(path)) {
		return
	}
	h.forgetBoots()
	// The note is written atomically, because a truncated one would contain another time.
	note := filepath.Join(filepath.Dir(path), ".new-"+strconv.Itoa(os.Getpid()))
	if os.WriteFile(note, []byte(h.self.Host+" "+strconv.FormatInt(at.Unix(), 10)+"\n"), 0o644) != nil || os.Rename(note, path) != nil {
		os.Remove(note)
	}
}

// forgetBoots removes old notes.
func (h *Host) forgetBoots() {
	entries, err := os.ReadDir(filepath.Join(h.dir, bootsDir))
	if err != nil {
		return
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > bootRetention {
			os.Remove(filepath.Join(h.dir, bootsDir, e.Name()))
		}
	}
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// local reports whether a directory is on a disk of this machine.
func local(dir string) bool {
	name, err := filelock.NetworkDisk(dir)
	return err == nil && name == ""
}

// ticks is the number of clock ticks per second in /proc.
const ticks = 100

// restarted reports whether this machine has restarted since p started, which ended p. False
// means unknown.
func (h *Host) restarted(p lockkeeper.Process) bool {
	if h.dir == "" || p.Boot == h.self.Boot || p.Host != h.self.Host || strings.ContainsRune(p.Boot, filepath.Separator) || !local(h.dir) {
		return false
	}
	text, err := os.ReadFile(filepath.Join(h.dir, bootsDir, p.Boot))
	if err != nil {
		return false
	}
	host, started, ok := strings.Cut(strings.TrimSpace(string(text)), " ")
	then, err := strconv.ParseInt(started, 10, 64)
	now, unknown := boot.Started()
	if !ok || err != nil || unknown != nil || host != p.Host {
		return false
	}
	born := time.Unix(then, 0).Add(time.Duration(p.Start) * (time.Second / ticks))
	return now.After(born.Add(boot.Tolerance))
}

package process

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/machine/boot"
	"lockkeeper/internal/machine/filelock"
)

// bootsDir is the directory, below that of a host, with a note for each boot that used it. The
// file has the name of the boot id and contains the start time of the boot.
//
// A process of another boot died in a restart of this machine if its boot used the
// same directory of the same local disk, and this boot started after the process
// did. A container with another boot id fails the second condition, a machine with a
// copied machine id the first.
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
	// Atomic, because a truncated note would contain another time.
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
	if errors.Is(err, fs.ErrNotExist) || err != nil {
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

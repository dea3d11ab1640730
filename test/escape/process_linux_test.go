package escape

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func processAttempts() []attempt {
	seen := func(l level) string {
		if l.alone() {
			return "processes of the user can be seen"
		}
		return ""
	}
	of := func(w *world, name string) string { return fmt.Sprintf("/proc/%d/%s", w.Victim.PID, name) }
	return []attempt{
		{name: "read the environment of another process", try: func(w *world) error { return w.find(os.ReadFile(of(w, "environ"))) }},
		{name: "read the command line of another process", try: func(w *world) error { return w.find(os.ReadFile(of(w, "cmdline"))) }, open: seen},
		{name: "read the memory of another process by its file", try: func(w *world) error {
			f, err := os.Open(of(w, "mem"))
			if err != nil {
				return err
			}
			defer f.Close()
			text := make([]byte, 1024)
			n, err := f.ReadAt(text, int64(w.Victim.Address))
			return w.find(text[:n], err)
		}},
		{name: "read the memory of another process by process_vm_readv", try: func(w *world) error {
			text := make([]byte, 1024)
			local := []unix.Iovec{{Base: &text[0], Len: uint64(len(text))}}
			n, err := unix.ProcessVMReadv(w.Victim.PID, local, []unix.RemoteIovec{{Base: w.Victim.Address, Len: len(text)}}, 0)
			return w.find(text[:max(n, 0)], err)
		}},
		{name: "read ~ through the root of another process", try: func(w *world) error {
			return w.find(os.ReadFile(of(w, "root") + filepath.Join(w.Home, homeSecrets[0])))
		}},
		{name: "read ~ through the root of process 1", root: true, try: func(w *world) error {
			return w.find(os.ReadFile("/proc/1/root" + filepath.Join(w.Home, homeSecrets[0])))
		}, moot: missing("/proc/1/root")},
		{name: "open a descriptor of another process", try: func(w *world) error { return w.find(os.ReadFile(of(w, fmt.Sprint("fd/", w.Victim.FD)))) }},
		{name: "copy a descriptor of another process", try: func(w *world) error {
			process, err := unix.PidfdOpen(w.Victim.PID, 0)
			if err != nil {
				return err
			}
			defer unix.Close(process)
			fd, err := unix.PidfdGetfd(process, w.Victim.FD, 0)
			if err != nil {
				return err
			}
			f := os.NewFile(uintptr(fd), "copied")
			defer f.Close()
			text := make([]byte, 1024)
			n, err := f.ReadAt(text, 0)
			if n > 0 {
				err = nil
			}
			return w.find(text[:n], err)
		}},
		{name: "read the environment of the supervisor", try: func(w *world) error {
			pid, err := supervisor()
			if err != nil {
				return err
			}
			return w.find(os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)))
		}},
		{name: "signal the supervisor", try: func(w *world) error {
			pid, err := supervisor()
			if err != nil {
				return err
			}
			return unix.Kill(pid, unix.SIGCONT)
		}},
		{name: "signal another process", try: func(w *world) error { return unix.Kill(w.Victim.PID, unix.SIGCONT) }},
		{name: "trace another process", apart: true, try: func(w *world) error { return unix.PtraceSeize(w.Victim.PID) }},
		{name: "change the limits of another process", try: func(w *world) error {
			var limit unix.Rlimit
			if err := unix.Prlimit(w.Victim.PID, unix.RLIMIT_CORE, nil, &limit); err != nil {
				return err
			}
			return unix.Prlimit(w.Victim.PID, unix.RLIMIT_CORE, &limit, nil)
		}, open: func(l level) string {
			if l.alone() {
				return "Landlock does not hold limits of other processes"
			}
			return ""
		}},
		{name: "enter the files of another process", apart: true, root: true, try: func(w *world) error {
			fd, err := unix.Open(of(w, "ns/mnt"), unix.O_RDONLY, 0)
			if err != nil {
				return err
			}
			if err := unix.Unshare(unix.CLONE_FS); err != nil {
				return err
			}
			return unix.Setns(fd, unix.CLONE_NEWNS)
		}},
		{name: "remove the mark of the sandbox", root: true, apart: true, try: func(*world) error {
			var now unix.Rlimit
			if err := unix.Getrlimit(unix.RLIMIT_LOCKS, &now); err != nil {
				return err
			}
			lower := unix.Rlimit{Cur: 7, Max: now.Max - 1} // outside the sandbox there is no mark to remove
			if err := unix.Setrlimit(unix.RLIMIT_LOCKS, &lower); err != nil {
				return err
			}
			return unix.Setrlimit(unix.RLIMIT_LOCKS, &now)
		}, moot: lacks(unix.CAP_SYS_RESOURCE)},
	}
}

// supervisor returns the pid of the process that supervises the run.
func supervisor() (int, error) {
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0, err
	}
	for _, line := range lines {
		text, err := os.ReadFile(line)
		if err == nil && strings.HasSuffix(string(text), "\x00run\x00--plan\x00plan.yaml\x00") {
			return strconv.Atoi(strings.Split(line, "/")[2])
		}
	}
	return 0, errors.New("no process is the supervisor")
}

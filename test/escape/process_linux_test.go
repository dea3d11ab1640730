package escape

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

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
		{name: "write the memory of another process", try: func(w *world) error {
			text := []byte(w.Secret[:1]) // what is there already
			local := []unix.Iovec{{Base: &text[0], Len: uint64(len(text))}}
			_, err := unix.ProcessVMWritev(w.Victim.PID, local, []unix.RemoteIovec{{Base: w.Victim.Address, Len: len(text)}}, 0)
			return err
		}},
		{name: "watch what another process computes", try: func(w *world) error { return watch(w.Victim.PID, -1) }, moot: func(level) string {
			if err := watch(0, -1); err != nil {
				return "a process cannot even watch itself: " + err.Error()
			}
			return ""
		}},
		{name: "watch what all processes compute", root: true, try: func(*world) error { return watch(-1, 0) }, moot: lacks(unix.CAP_PERFMON)},
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
			pid, err := w.supervisor()
			if err != nil {
				return err
			}
			return w.find(os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)))
		}},
		{name: "signal the supervisor", try: func(w *world) error {
			pid, err := w.supervisor()
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
		}},
		{name: "let another process end first", try: func(w *world) error { return openForWriting(of(w, "oom_score_adj")) }},
		{name: "change the priority of another process", try: func(w *world) error {
			const highest = 20 // the system call returns 20 minus the priority
			now, err := unix.Getpriority(unix.PRIO_PROCESS, w.Victim.PID)
			if err != nil {
				return err
			}
			return unix.Setpriority(unix.PRIO_PROCESS, w.Victim.PID, highest-now)
		}, open: func(l level) string {
			if l.alone() && !l.root { // root has lost rights that the other process has
				return "Landlock does not hold priorities of other processes"
			}
			return ""
		}},
		{name: "open the namespaces of another process by its descriptor", try: func(w *world) error {
			const pidfdGetMountNamespace = 0xff03 // from linux/pidfd.h
			process, err := unix.PidfdOpen(w.Victim.PID, 0)
			if err != nil {
				return err
			}
			defer unix.Close(process)
			fd, err := unix.IoctlRetInt(process, pidfdGetMountNamespace)
			if err != nil {
				return err
			}
			return unix.Close(fd)
		}},
		{name: "leave the control group", root: true, try: func(*world) error {
			parent, err := os.Open(controlGroup())
			if err != nil {
				return err
			}
			defer parent.Close()
			cmd := exec.Command("/bin/true")
			cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(parent.Fd())}
			return cmd.Run()
		}, moot: func(level) string {
			if controlGroup() == "" {
				return "this machine has no control groups of version 2"
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

// watch opens a counter for a process, or for all of them on a processor.
func watch(pid, processor int) error {
	fd, err := unix.PerfEventOpen(&unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_TASK_CLOCK,
		Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})), Bits: unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv}, pid, processor, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// controlGroup returns the directory of the top control group, or "".
func controlGroup() string {
	for _, dir := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		var info unix.Statfs_t
		if unix.Statfs(dir, &info) == nil && info.Type == unix.CGROUP2_SUPER_MAGIC {
			return dir
		}
	}
	return ""
}

// supervisor returns the pid of the process that supervises the run. Another test may run at the
// same time, so its program tells.
func (w *world) supervisor() (int, error) {
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0, err
	}
	for _, line := range lines {
		text, err := os.ReadFile(line)
		if err == nil && strings.HasPrefix(string(text), filepath.Dir(w.Root)+"/") && strings.HasSuffix(string(text), "\x00run\x00--plan\x00plan.yaml\x00") {
			return strconv.Atoi(strings.Split(line, "/")[2])
		}
	}
	return 0, errors.New("no process is the supervisor")
}

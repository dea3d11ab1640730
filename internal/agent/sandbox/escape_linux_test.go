package sandbox

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"lockkeeper/internal/machine/machinetest"
)

// escape tries to reach processes and privileges outside. It runs only confined.
func escape(supervisor string) int {
	tell := func(what string, err error) {
		if err == nil {
			fmt.Println("done:", what)
		}
	}
	open := func(path string) error {
		f, err := os.Open(path)
		if err == nil {
			f.Close()
		}
		return err
	}
	// A process that may read another's memory may also write it, by ptrace. The parent is
	// the first process of the namespace, or the supervisor.
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", os.Getppid()))
	if err != nil || len(threads) == 0 {
		fmt.Println("sees no parent:", err)
	}
	for _, thread := range threads {
		tell("open the memory of its parent", open(fmt.Sprintf("/proc/%d/task/%s/mem", os.Getppid(), thread.Name())))
	}
	tell("see the supervisor", errorOf(os.ReadFile("/proc/"+supervisor+"/environ")))
	tell("open the memory of the supervisor", open("/proc/"+supervisor+"/mem"))
	conn, err := net.Dial("unix", "@lockkeeper-test-"+supervisor)
	if err == nil {
		conn.Close()
	}
	tell("enter an abstract socket", err)
	if fds, err := os.ReadDir("/proc/self/fd"); err == nil {
		for _, fd := range fds {
			if target, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasSuffix(target, "/root/file") {
				fmt.Println("done: inherit a file")
			}
		}
	}
	head, data := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
	if err := unix.Capget(&head, &data[0]); err != nil || data[0].Permitted&(1<<unix.CAP_SYS_ADMIN|1<<unix.CAP_MKNOD|1<<unix.CAP_SYS_PTRACE|1<<unix.CAP_SYS_MODULE) != 0 {
		fmt.Println("done: keep capabilities", err)
	}
	return 0
}

// shows: GP-5
func TestNothingReachesOut(t *testing.T) {
	eachLevel(t, func(t *testing.T, l Level) {
		s := newScene(t)
		socket, err := net.Listen("unix", fmt.Sprintf("@lockkeeper-test-%d", os.Getpid()))
		if err != nil {
			t.Fatal(err)
		}
		defer socket.Close()
		leaked, err := os.OpenFile(s.root+"/file", os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer leaked.Close()
		argv := s.wrap(l, helperArgv("escape", fmt.Sprint(os.Getpid()))...)
		cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
		cmd.Dir, cmd.Stderr, cmd.ExtraFiles = s.workspace, os.Stderr, []*os.File{leaked, leaked}
		said, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(said)) {
			line = strings.TrimSpace(line)
			switch {
			case line == "done: enter an abstract socket" && l.Landlock < scopes: // namespaces do not deny that
			default:
				t.Error(line)
			}
		}
	})
}

// A confined command cannot signal other processes of the supervisor's user.
func TestSignalsStayInside(t *testing.T) {
	eachLevel(t, func(t *testing.T, l Level) {
		if l.Landlock < scopes && !l.Namespaces {
			t.Skip("this version of Landlock does not hold signals")
		}
		s := newScene(t)
		victim := exec.Command("sleep", "1000")
		if err := victim.Start(); err != nil {
			t.Fatal(err)
		}
		_, code := s.run(l, "sh", "-c", fmt.Sprintf("kill -KILL %d", victim.Process.Pid))
		if code == 0 {
			t.Error("it could signal")
		}
		if err := victim.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		victim.Wait()
		if by := victim.ProcessState.Sys().(syscall.WaitStatus).Signal(); by != syscall.SIGTERM {
			t.Errorf("ended by %v", by)
		}
	})
}

// A user namespace inside the sandbox restores no rights.
//
// shows: GP-5
func TestNamespacesInsideGiveNothing(t *testing.T) {
	if _, err := exec.LookPath("unshare"); err != nil {
		machinetest.Lacks(t, "no unshare here: %v", err)
	}
	eachLevel(t, func(t *testing.T, l Level) {
		s := newScene(t)
		before := s.shared()
		for _, script := range []string{`mount -o remount,bind,rw "$0"`, `mount -o remount,rw /`, `umount -l /proc`, `umount -l "$0"`, `umount -l /`, `true`} {
			said, _ := s.run(l, "unshare", "-Urm", "sh", "-c", script+`; cat "$0/../store/state.db"; echo changed > "$0/file"`, s.root)
			if strings.Contains(said, "secret") {
				t.Errorf("%s: the store is seen: %s", script, said)
			}
		}
		if after := s.shared(); after != before {
			t.Errorf("before\n%s\nafter\n%s", before, after)
		}
	})
}

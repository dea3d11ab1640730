//go:build machines

package machines

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"lockkeeper/internal/project/projecttest"
)

const (
	// insideVariable is set in the namespaces of the suite.
	insideVariable = "LOCKKEEPER_TEST_MACHINES"
	suiteName      = "machines-suite"

	// disks is a disk in memory that only the suite sees. Every system has the directory.
	disks   = "/mnt"
	bin     = disks + "/bin"     // the test program, under the name of each role
	checked = disks + "/checked" // the files of the checker
)

// The main thread keeps its namespaces, because /proc/self shows those of the main thread.
func init() { runtime.LockOSThread() }

// namespaces of the suite and of each machine.
const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC

// outside runs the suite in its own namespaces and returns its exit code. The suite is the first
// process of its PID namespace. So its end also ends all machines.
func outside() int {
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, "machines: cannot run here:", err)
		return 1
	}
	if err := lacks(); err != nil {
		return fail(err)
	}
	exe, err := os.Executable()
	if err != nil {
		return fail(err)
	}
	cmd := exec.Command(exe, os.Args[1:]...)
	cmd.Args[0] = suiteName
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), insideVariable+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces, Pdeathsig: syscall.SIGKILL}
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() > 0 {
		return exit.ExitCode()
	}
	if err != nil {
		return fail(err)
	}
	return 0
}

// lacks names everything that this host lacks.
func lacks() error {
	var list []error
	if os.Geteuid() != 0 {
		list = append(list, errors.New("only root may make machines"))
	}
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		list = append(list, fmt.Errorf("no network cards: %w", err))
	}
	for _, program := range []string{"git", "ip", "psql", "pgbouncer"} {
		if _, err := exec.LookPath(program); err != nil {
			list = append(list, fmt.Errorf("%w; next: make test-machines, which installs it on Debian", err))
		}
	}
	if _, err := postgresBin(); err != nil {
		list = append(list, err)
	}
	return errors.Join(list...)
}

// inside prepares the namespaces of the suite, and makes the roles of the test program callable.
func inside(roles []projecttest.Program) error {
	if os.Getpid() != 1 {
		return fmt.Errorf("%s is set, but this process has no PID namespace of its own", insideVariable)
	}
	err := errors.Join(
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mount("proc", "/proc", "proc", 0, ""),
		unix.Mount("tmpfs", disks, "tmpfs", 0, "mode=755"),
	)
	if err != nil {
		return fmt.Errorf("prepare the namespaces of the suite: %w", err)
	}
	if err := errors.Join(os.Mkdir(bin, 0o755), os.Mkdir(checked, 0o755)); err != nil {
		return err
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	program := filepath.Join(bin, "program")
	if err := copyProgram(exe, program); err != nil {
		return err
	}
	for _, r := range roles {
		if err := os.Symlink("program", filepath.Join(bin, r.Name)); err != nil {
			return err
		}
	}
	return nil
}

func copyProgram(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// postgresBin returns the directory of PostgreSQL's newest server.
func postgresBin() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil {
		return "", err
	}
	if initdb, err := exec.LookPath("initdb"); err == nil {
		if initdb, err = filepath.EvalSymlinks(initdb); err == nil {
			found = append(found, initdb)
		}
	}
	if len(found) == 0 {
		return "", errors.New("no server of PostgreSQL in /usr/lib/postgresql or PATH; next: apt-get install postgresql")
	}
	return filepath.Dir(found[len(found)-1]), nil
}

// variables returns the environment of a person on a machine.
func variables() []string {
	env := []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + home, "USER=ann", "TERM=dumb", "LC_ALL=C", "GORACE=atexit_sleep_ms=0", insideVariable + "=1",
		"GIT_CONFIG_SYSTEM=" + os.DevNull, "GIT_AUTHOR_NAME=Ann", "GIT_AUTHOR_EMAIL=ann@example.org", "GIT_COMMITTER_NAME=Ann", "GIT_COMMITTER_EMAIL=ann@example.org"}
	if !strings.Contains(os.Getenv("PATH"), "/usr/sbin") {
		env[0] += ":/usr/sbin:/sbin"
	}
	return env
}

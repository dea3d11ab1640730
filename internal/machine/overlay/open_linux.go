package overlay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// mountArg is the first argument of this program when it mounts a stack. Upper, Work and Lower
// follow.
const mountArg = "@overlay"

// resultFD is the socket over which the started program answers: the merged directory, or a text
// that says why there is none.
const resultFD = 3

// Main mounts a stack if this program was started by Open. It must be called before anything else.
// If handled is true, the program must exit with code.
func Main(args []string) (handled bool, code int) {
	if len(args) < 5 || args[1] != mountArg {
		return false, 0
	}
	unix.CloseOnExec(resultFD)
	text, rights := []byte("mounted"), []byte(nil)
	merged, err := Stack{Upper: args[2], Work: args[3], Lower: args[4:]}.open()
	if err != nil {
		text = []byte(err.Error())
	} else {
		defer merged.Close()
		rights = unix.UnixRights(int(merged.Fd()))
	}
	if err := unix.Sendmsg(resultFD, text, rights, nil, 0); err != nil {
		fmt.Fprintln(os.Stderr, "overlay: answer:", err)
		return true, 1
	}
	return true, 0
}

// Open mounts the stack and returns the merged directory, which the caller uses with openat(2) and
// its relatives. Changes are in Upper at once.
func Open(ctx context.Context, s Stack) (*os.File, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if os.Geteuid() == 0 {
		merged, err := s.open()
		if !errors.Is(err, unix.EPERM) {
			return merged, err
		}
	}
	if len(os.Args) > 1 && os.Args[1] == mountArg {
		// This process was started to mount. It would start itself endlessly.
		return nil, errors.New("overlay: this program must call overlay.Main before anything else")
	}
	return s.openInNamespace(ctx)
}

// open mounts the stack in this process and opens the merged directory.
func (s Stack) open() (*os.File, error) {
	mount, err := s.Mount("")
	if err != nil {
		return nil, err
	}
	defer mount.Close()
	fd, err := unix.Openat(int(mount.Fd()), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("overlay: open the merged directory: %w", err)
	}
	return os.NewFile(uintptr(fd), "overlay"), nil
}

// openInNamespace starts this program again in a user namespace, which permits mounting.
func (s Stack) openInNamespace(ctx context.Context) (*os.File, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("overlay: make a socket: %w", err)
	}
	here, there := os.NewFile(uintptr(pair[0]), "socket"), os.NewFile(uintptr(pair[1]), "socket")
	defer here.Close()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", append([]string{mountArg, s.Upper, s.Work}, s.Lower...)...)
	cmd.ExtraFiles = []*os.File{there}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}},
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_DAC_OVERRIDE}, // the kernel needs the second one to clean up the work directory
	}
	var said bytes.Buffer
	cmd.Stderr = &said
	err = cmd.Run()
	there.Close()
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, fmt.Errorf("overlay: mount in a user namespace: %w %s", err, strings.TrimSpace(said.String()))
	}
	return receive(here)
}

// receive reads the answer of a program that has ended.
func receive(from *os.File) (*os.File, error) {
	text, rights := make([]byte, 8<<10), make([]byte, unix.CmsgSpace(4))
	n, m, _, _, err := unix.Recvmsg(int(from.Fd()), text, rights, unix.MSG_CMSG_CLOEXEC|unix.MSG_DONTWAIT)
	if err != nil {
		return nil, fmt.Errorf("overlay: receive the merged directory: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(rights[:m])
	switch {
	case err != nil:
		return nil, fmt.Errorf("overlay: receive the merged directory: %w", err)
	case n == 0:
		return nil, errors.New("overlay: this program must call overlay.Main before anything else")
	case len(messages) == 0:
		return nil, errors.New(string(text[:n]))
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return nil, fmt.Errorf("overlay: receive the merged directory: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "overlay"), nil
}

package sandbox

import (
	"errors"
	"fmt"
	"os"

	"lockkeeper"

	"golang.org/x/sys/unix"
)

// leaveTerminal gives up the controlling terminal of this process, and so of the command, which
// could otherwise type into it. The session and the process group stay the same, so signals to
// the group still reach the command.
func leaveTerminal() error {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		return nil // there is no terminal
	}
	defer unix.Close(fd)
	if _, err := unix.IoctlRetInt(fd, unix.TIOCNOTTY); err != nil {
		return fmt.Errorf("leave the terminal: %w", err)
	}
	return nil
}

// checkFiles refuses standard files through which a command could reach a terminal or a directory
// that is not listed.
func checkFiles() error {
	for _, f := range []*os.File{os.Stdin, os.Stdout, os.Stderr} {
		info, err := f.Stat()
		if errors.Is(err, unix.EBADF) {
			continue
		}
		if err != nil {
			return err
		}
		if info.IsDir() {
			return fmt.Errorf("%s is a directory", f.Name())
		}
		if _, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS); err == nil {
			return lockkeeper.WithNext(fmt.Errorf("%s is a terminal", f.Name()), "give the command a file, a pipe or the null device")
		}
	}
	return nil
}

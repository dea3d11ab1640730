package escape

import (
	"errors"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

func terminalAttempts() []attempt {
	return []attempt{
		{name: "type into the terminal as a standard file", try: func(*world) error {
			err := errors.New("none")
			for fd := range 3 {
				if err = typeInto(fd); err == nil {
					break
				}
			}
			return err
		}, moot: always("commands of a run have no terminal")},
		{name: "open /dev/tty", try: func(*world) error { return openAndType("/dev/tty", false) }, moot: always("commands of a run have no terminal")},
		{name: "write to the terminal by its name", try: func(w *world) error {
			f, err := os.OpenFile(w.Terminal, os.O_WRONLY|unix.O_NOCTTY, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.WriteString("\x1b[0m")
			return err
		}},
		{name: "type into the terminal by its name", try: func(w *world) error { return openAndType(w.Terminal, false) }, moot: notRoot},
		{name: "make the terminal its own and type", apart: true, try: func(w *world) error { return openAndType(w.Terminal, true) }, moot: notRoot},
	}
}

func notRoot(l level) string {
	if l.root {
		return ""
	}
	return "it is another session's"
}

// typeInto inserts a character into the input of a terminal. Nothing waits for it.
func typeInto(fd int) error {
	space := byte(' ')
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCSTI, uintptr(unsafe.Pointer(&space))); errno != 0 {
		return errno
	}
	return nil
}

// openAndType opens a terminal, as the controlling terminal of a new session if own is set, and
// types into it.
func openAndType(name string, own bool) error {
	flags := os.O_RDWR | unix.O_NOCTTY
	if own {
		if _, err := unix.Setsid(); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(name, flags, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if own {
		if err := unix.IoctlSetInt(int(f.Fd()), unix.TIOCSCTTY, 1); err != nil {
			return err
		}
	}
	return typeInto(int(f.Fd()))
}

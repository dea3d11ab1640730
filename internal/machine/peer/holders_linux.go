package peer

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// findHolders calls the function found for each process that has one of the sockets open. It passes
// over processes that this process may not inspect.
func findHolders(inodes map[uint64]pair, found func(uint64, holder)) error {
	if len(inodes) == 0 {
		return nil
	}
	own, err := ownLimit()
	if err != nil {
		return err
	}
	processes, err := names("/proc")
	if err != nil {
		return err
	}
	for _, name := range processes {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if err := inspect(pid, own, inodes, found); err != nil && !isGone(err) {
			return fmt.Errorf("process %d: %w", pid, err)
		}
	}
	return nil
}

func ownLimit() (uint64, error) {
	text, err := os.ReadFile("/proc/self/limits")
	if err != nil {
		return 0, err
	}
	return limitIn(text)
}

// isGone reports whether an error says that a process has ended or may not be inspected.
func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) || errors.Is(err, fs.ErrPermission)
}

// inspect calls the function found for each of the sockets that one process has open. The directory
// of the process stays open meanwhile, so a later process with the same number is not mistaken for
// it.
func inspect(pid int, own uint64, inodes map[uint64]pair, found func(uint64, holder)) error {
	dir, err := unix.Open("/proc/"+strconv.Itoa(pid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	fd, err := unix.Openat(dir, "fd", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	open := os.NewFile(uintptr(fd), "fd")
	defer open.Close()
	list, err := open.Readdirnames(-1)
	if err != nil {
		return err
	}
	held := map[uint64]bool{}
	var link [64]byte
	for _, name := range list {
		n, err := unix.Readlinkat(fd, name, link[:])
		if err != nil {
			continue // the descriptor was closed meanwhile
		}
		if inode, ok := socketInode(link[:n]); ok && inodes[inode] != (pair{}) {
			held[inode] = true
		}
	}
	if len(held) == 0 {
		return nil
	}
	limit, err := limitOf(dir)
	if isGone(err) {
		return nil // the process ended, so it does not hold the socket
	}
	if err != nil {
		return err
	}
	for inode := range held {
		found(inode, holder{pid: pid, marked: limit <= firstMark && limit < own})
	}
	return nil
}

// socketInode returns the inode in a text such as "socket:[123]".
func socketInode(link []byte) (uint64, bool) {
	rest, ok := bytes.CutPrefix(link, []byte("socket:["))
	number, closed := bytes.CutSuffix(rest, []byte("]"))
	if !ok || !closed {
		return 0, false
	}
	inode, err := strconv.ParseUint(string(number), 10, 64)
	return inode, err == nil
}

// limitOf reads the hard limit of the process whose directory is open.
func limitOf(dir int) (uint64, error) {
	fd, err := unix.Openat(dir, "limits", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	f := os.NewFile(uintptr(fd), "limits")
	defer f.Close()
	text := make([]byte, 4096)
	n, err := f.Read(text)
	if err != nil {
		return 0, err
	}
	return limitIn(text[:n])
}

// names lists a directory.
func names(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

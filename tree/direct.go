package tree

import (
	"strings"

	"golang.org/x/sys/unix"

	"lockkeeper"
)

// resolveDirect resolves a common path, with plain names and no link, with one system
// call instead of one per directory. It leaves everything else, including errors, to
// the walk.
func (w *walk) resolveDirect(rootFD int) (target lockkeeper.Target, ok bool) {
	if len(w.segs) < 2 || w.segs[0] == lockkeeper.GitTarget || w.segs[0] == stateDir || w.mustDir {
		return target, false
	}
	for _, seg := range w.segs {
		if seg == ".." || !isPlain(seg) {
			return target, false
		}
	}
	path := strings.Join(w.segs, "/")
	name := w.segs[len(w.segs)-1]
	dir := path[:len(path)-len(name)-1]
	fd, err := unix.Openat2(rootFD, dir, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return target, false
	}
	defer unix.Close(fd)
	e, err := statAt(fd, name)
	if err == unix.ENOENT { // a new file is on the device of its directory
		if e, err = statFD(fd); err != nil || !w.root.self.sameDevice(e) {
			return target, false
		}
	} else if err != nil || !e.isRegular() || e.links > 1 || !w.root.self.sameDevice(e) {
		return target, false
	}
	return lockkeeper.Target{Path: path, Kind: lockkeeper.File}, !isNested(rootFD, dir)
}

// isNested reports whether a directory or one of its parents may be another root.
func isNested(rootFD int, dir string) bool {
	for end := 0; end < len(dir); {
		next := strings.IndexByte(dir[end+1:], '/')
		if next < 0 {
			end = len(dir)
		} else {
			end += 1 + next
		}
		if unix.Faccessat(rootFD, dir[:end]+"/"+stateDir+"/"+marker, unix.F_OK, unix.AT_SYMLINK_NOFOLLOW) != unix.ENOENT {
			return true
		}
	}
	return false
}

package project

import (
	"errors"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
	"lockkeeper"
)

// checkOwner refuses the database of another user. The user root would create files there that
// the owner cannot write. Other users have no access anyway.
func checkOwner(path string) error {
	uid, known := ownerOf(path)
	switch {
	case !known || uid == os.Geteuid():
		return nil
	case os.Geteuid() == 0:
		return &lockkeeper.RefusedError{Act: "opening the locks as root",
			Reason: "they belong to user " + userName(uid) + ", who could not use the files that root would create beside them",
			Next:   "run it as " + userName(uid)}
	case !mayWrite(path):
		return belongsTo(path, uid, fs.ErrPermission)
	}
	return nil
}

// closedMarker returns the error for a marker without read permission, or nil if err is another
// error or the owner is unknown.
func closedMarker(path string, err error) error {
	if !errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if uid, known := ownerOf(filepath.Dir(path)); known && uid != os.Geteuid() {
		return belongsTo(path, uid, err)
	}
	return nil
}

func belongsTo(path string, uid int, err error) error {
	return &lockkeeper.StoreError{Store: path, Reason: "this root's locks belong to user " + userName(uid), Err: err,
		Next: "run as that user, or share through PostgreSQL"}
}

func userName(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username
	}
	return "number " + strconv.Itoa(uid)
}

// ownerOf returns the id of the user that owns a file, if it is known.
func ownerOf(path string) (uid int, known bool) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, false
	}
	return int(info.Sys().(*syscall.Stat_t).Uid), true
}

func mayWrite(path string) bool { return unix.Access(path, unix.R_OK|unix.W_OK) == nil }

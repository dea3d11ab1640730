package sqlstore

import (
	"errors"
	"io/fs"
	"sync"

	"github.com/ncruces/go-sqlite3/vfs"
)

// fileSystem is the name of the driver's file system with logFiles.
const fileSystem = "lockkeeper"

// registerFileSystem makes fileSystem known to the driver.
var registerFileSystem = sync.OnceFunc(func() {
	vfs.Register(fileSystem, logFiles{vfs.Find("").(vfs.VFSFilename)})
})

// logFiles opens a write-ahead log that exists without asking to create it. The driver syncs a
// log twice at its first commit if it may have created it, and a short process commits only once.
type logFiles struct{ vfs.VFSFilename }

func (l logFiles) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	if flags&vfs.OPEN_WAL != 0 {
		file, opened, err := l.VFSFilename.OpenFilename(name, flags&^vfs.OPEN_CREATE)
		if !errors.Is(err, fs.ErrNotExist) { // guardCompanions creates the log, and another process may have removed it since
			return file, opened, err
		}
	}
	return l.VFSFilename.OpenFilename(name, flags)
}

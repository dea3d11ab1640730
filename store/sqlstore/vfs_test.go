package sqlstore

import (
	"os"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

// recorded is the driver's file system. It records how often a write-ahead log may be created.
type recorded struct {
	vfs.VFSFilename
	opened, creating *int
}

func (r recorded) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	if flags&vfs.OPEN_WAL != 0 {
		*r.opened++
		if flags&vfs.OPEN_CREATE != 0 {
			*r.creating++
		}
	}
	return r.VFSFilename.OpenFilename(name, flags)
}

// A log that exists is opened as existing. A missing one is created, also if another process removes
// it at that moment.
func TestLogIsOpenedAsItIs(t *testing.T) {
	var opened, creating int
	vfs.Register(t.Name(), logFiles{recorded{vfs.Find("").(vfs.VFSFilename), &opened, &creating}})
	t.Cleanup(func() { vfs.Unregister(t.Name()) })
	path := t.TempDir() + "/x.db"
	write := func(sql string) {
		conn, err := sqlite3.Open("file:" + path + "?vfs=" + t.Name())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.Config(sqlite3.DBCONFIG_NO_CKPT_ON_CLOSE, true); err != nil {
			t.Fatal(err)
		}
		if err := conn.Exec("PRAGMA journal_mode = wal; " + sql); err != nil {
			t.Fatal(err)
		}
	}
	write("CREATE TABLE t(x)")
	if opened != 2 || creating != 1 {
		t.Errorf("missing: opened %d times, %d times to create it", opened, creating)
	}
	if _, err := os.Stat(path + "-wal"); err != nil {
		t.Fatal(err)
	}
	opened, creating = 0, 0
	write("INSERT INTO t VALUES (1)")
	if opened != 1 || creating != 0 {
		t.Errorf("existing: opened %d times, %d times to create it", opened, creating)
	}
}

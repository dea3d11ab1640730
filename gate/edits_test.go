package gate_test

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/durable/durabletest"
	"lockkeeper/gate"
	"lockkeeper/rescue"
)

// A meddle is a disk on which another program acts just before the nth operation of a kind,
// counted from 1, once armed is set.
type meddle struct {
	durabletest.FaultyDisk
	armed bool
}

func newMeddle(op durabletest.Op, nth int, act func()) *meddle {
	m := &meddle{}
	var mu sync.Mutex
	m.At = func(_ int, now durabletest.Op) {
		mu.Lock()
		defer mu.Unlock()
		if !m.armed || now != op {
			return
		}
		if nth--; nth == 0 {
			act()
		}
	}
	return m
}

// shelf returns the displaced content on the rescue shelf by path.
func (w *world) shelf() map[string][]string {
	w.t.Helper()
	list, err := w.gate.Rescue().List(w.t.Context())
	must(w.t, err)
	out := map[string][]string{}
	for _, e := range list {
		if e.Kind != rescue.Displaced && e.Kind != rescue.Whole {
			continue
		}
		f, err := w.gate.Rescue().Content(e.ID)
		must(w.t, err)
		content, err := io.ReadAll(f)
		must(w.t, err, f.Close())
		out[e.Path] = append(out[e.Path], string(content))
	}
	return out
}

// intrusions lists the ways in which another program may change a path.
var intrusions = map[string]func(t *testing.T, path string) (now string){
	"written in place": func(t *testing.T, path string) string {
		must(t, os.WriteFile(path, []byte("theirs"), 0o644))
		return "-rw-r--r-- theirs"
	},
	"replaced": func(t *testing.T, path string) string {
		must(t, os.WriteFile(path+"~", []byte("theirs"), 0o600), os.Rename(path+"~", path))
		return "-rw------- theirs"
	},
	"another mode": func(t *testing.T, path string) string {
		must(t, os.WriteFile(path, []byte("old"), 0o644), os.Chmod(path, 0o600))
		return "-rw------- old"
	},
	"a link": func(t *testing.T, path string) string {
		must(t, os.RemoveAll(path), os.Symlink("/etc/passwd", path))
		return "Lrwxrwxrwx /etc/passwd"
	},
	"a directory": func(t *testing.T, path string) string {
		must(t, os.RemoveAll(path), os.Mkdir(path, 0o755), os.WriteFile(path+"/f", []byte("theirs"), 0o644))
		return "drwxr-xr-x "
	},
	"a FIFO": func(t *testing.T, path string) string {
		must(t, os.RemoveAll(path), unix.Mkfifo(path, 0o644))
		return "prw-r--r-- "
	},
	"removed": func(t *testing.T, path string) string {
		must(t, os.RemoveAll(path))
		return ""
	},
}

// changesOf returns three changes. The second is of the given kind, at test/b.
func changesOf(kind string) (list []gate.Change, swap durabletest.Op) {
	list = []gate.Change{gate.Put("test/a", []byte("new")), {}, gate.Put("test/c/c", []byte("new"))}
	switch kind {
	case "create":
		list[1], swap = gate.Put("test/b", []byte("new")), durabletest.Move
	case "replace":
		list[1], swap = gate.Put("test/b", []byte("new")), durabletest.Exchange
	case "delete":
		list[1], swap = gate.Delete("test/b"), durabletest.Move
	case "mode":
		list[1], swap = chmod("test/b", 0o755), durabletest.Exchange
	}
	return list, swap
}

// An edit by another program at the moment of the rename stays in place. The whole commit is
// rolled back, and its new content is kept.
//
// shows: SW-38 GP-4
func TestEditedDuringTheExchange(t *testing.T) {
	for _, kind := range []string{"create", "replace", "delete", "mode"} {
		for name, intrude := range intrusions {
			if kind == "create" && name == "removed" {
				continue
			}
			t.Run(kind+" "+name, func(t *testing.T) {
				changes, op := changesOf(kind)
				nth := 2 // after the exchange of test/a or the creation of test/c
				w := &world{}
				now := ""
				disk := newMeddle(op, nth, func() { now = intrude(t, w.in("test/b")) })
				files := map[string]string{"test/a": "old", "test/b": "old"}
				if kind == "create" {
					delete(files, "test/b")
				}
				*w = *newWorld(t, files, gate.Options{Disk: disk})
				g := w.hold("otter", "test/a", "test/b", "test/c/c")
				before := scan(t, w.dir, ".lockkeeper")
				disk.armed = true
				_, err := w.gate.Commit(t.Context(), &g.Grant, changes)
				w.refused(err, "base", "test/b", "another writer")
				after := scan(t, w.dir, ".lockkeeper")
				if after["test/b"] != now {
					t.Errorf("test/b is %q, want %q", after["test/b"], now)
				}
				for _, scan := range []map[string]string{before, after} {
					maps.DeleteFunc(scan, func(path, _ string) bool { return strings.HasPrefix(path, "test/b") })
				}
				if d := differences(before, after); len(d) > 0 {
					t.Errorf("not rolled back: %v", d)
				}
				if l := w.events(lockkeeper.EventUndone); len(l) != 1 {
					t.Errorf("%d events of undoing", len(l))
				}
				w.noStages()
				w.releases(g)
			})
		}
	}
}

// An edit after the exchange changes the landed file. It stays, and the next write of the grant
// detects it.
func TestEditedAfterTheExchange(t *testing.T) {
	w := &world{}
	disk := newMeddle(durabletest.OpenDir, 1, func() {})
	*w = *newWorld(t, map[string]string{"test/a": "old"}, gate.Options{Disk: disk})
	exchanged := false
	disk.At = func(_ int, op durabletest.Op) {
		switch {
		case op == durabletest.Exchange:
			exchanged = true
		case exchanged:
			exchanged = false
			must(t, os.WriteFile(w.in("test/a"), []byte("theirs"), 0o644))
		}
	}
	g := w.hold("otter", "test/a")
	w.commit(g, gate.Put("test/a", []byte("new")))
	w.want(map[string]string{"test/a": "theirs"})
	w.harmless("again", func() error { _, err := w.gate.Write(t.Context(), &g.Grant, "test/a", []byte("newer")); return err }, "(base)")
	w.releases(g)
}

// If a path is edited between the exchange and the rollback, the last edit stays in the tree.
// Every version that is no longer in the tree is on the shelf.
func TestEditedBeforeRollback(t *testing.T) {
	for _, kind := range []string{"create", "replace", "delete", "mode"} {
		for name, intrude := range intrusions {
			t.Run(kind+" "+name, func(t *testing.T) {
				changes, _ := changesOf(kind)
				changes = slices.Concat(changes[1:2], []gate.Change{gate.Put("test/z", []byte("new"))})
				w := &world{}
				now := ""
				nth := 1
				if kind == "replace" || kind == "mode" {
					nth = 2 // after the exchange of test/b
				}
				// The landing fails at test/z, which is edited when the landing reaches it. By
				// then test/b has been edited, too.
				disk := newMeddle(durabletest.Exchange, nth, func() {
					must(t, os.WriteFile(w.in("test/z"), []byte("theirs"), 0o644))
					intrude(t, w.in("test/b"))
					now = scan(t, w.in("test"))["b"]
				})
				files := map[string]string{"test/b": "old", "test/z": "old"}
				if kind == "create" {
					delete(files, "test/b")
				}
				*w = *newWorld(t, files, gate.Options{Disk: disk})
				g := w.hold("otter", "test/b", "test/z")
				disk.armed = true
				_, err := w.gate.Commit(t.Context(), &g.Grant, changes)
				w.refused(err, "base", "test/z")
				after := scan(t, w.dir, ".lockkeeper")
				original := kind == "delete" && name == "removed" // no other program has changed the file
				if original {
					now = "-rw-r--r-- old"
				}
				if after["test/b"] != now || after["test/z"] != "-rw-r--r-- theirs" {
					t.Errorf("test/b is %q, want %q; test/z is %q", after["test/b"], now, after["test/z"])
				}
				if kept := w.shelf()["test/b"]; kind != "create" && !original && !slices.Contains(kept, "old") {
					t.Errorf("the original is neither in the tree nor on the shelf: %q", kept)
				}
				w.noStages()
				w.releases(g)
			})
		}
	}
}

// If another program writes to a file while its change is rolled back, that edit is kept.
func TestEditedDuringRollback(t *testing.T) {
	for _, kind := range []string{"create", "replace", "mode", "edited"} {
		for name, intrude := range intrusions {
			t.Run(kind+" "+name, func(t *testing.T) {
				w := &world{}
				files := map[string]string{"test/d/b": "old"}
				change := gate.Put("test/d/b", []byte("new"))
				op := durabletest.Exchange
				switch kind {
				case "create":
					files, op = map[string]string{"test/d/x": "x"}, durabletest.Move
				case "mode":
					change = chmod("test/d/b", 0o755)
				}
				// Before the first swap, the directory is moved away or the file is edited.
				// Before the second, the new file is overwritten.
				path := "test/away/b"
				swaps := 0
				disk := &meddle{}
				disk.At = func(_ int, now durabletest.Op) {
					if !disk.armed || now != op {
						return
					}
					switch swaps++; {
					case swaps == 1 && kind == "edited":
						path = "test/d/b"
						must(t, os.WriteFile(w.in(path), []byte("old and edited"), 0o644))
					case swaps == 1:
						must(t, os.Rename(w.in("test/d"), w.in("test/away")))
					case swaps == 2:
						intrude(t, w.in(path))
					}
				}
				*w = *newWorld(t, files, gate.Options{Disk: disk})
				g := w.hold("otter", "test/d/b")
				disk.armed = true
				if _, err := w.gate.Commit(t.Context(), &g.Grant, []gate.Change{change}); err == nil {
					t.Fatal("accepted")
				}
				after := scan(t, w.dir, ".lockkeeper")
				old := strings.HasPrefix(after[path], "-rw-r--r-- old")
				kept := strings.Join(w.shelf()["test/d/b"], "|")
				theirs := name == "removed" || name == "another mode" || strings.Contains(fmt.Sprint(after), "theirs") || strings.Contains(kept, "theirs") || strings.Contains(kept, "kept as it was")
				if kind != "create" && !old && !strings.Contains(kept, "old") || !theirs {
					t.Errorf("lost: the tree has %v, the shelf %q", after, kept)
				}
				w.noStages()
				w.releases(g)
			})
		}
	}
}

// If the gate's state directory is removed during a commit, nothing more lands, the existing
// files stay whole, and the grant can be released.
func TestStateRemovedUnderACommit(t *testing.T) {
	for op, nth := range map[durabletest.Op]int{durabletest.Create: 1, durabletest.Chmod: 2, durabletest.Exchange: 1, durabletest.Move: 1, durabletest.Sync: 5} {
		for n := 1; n <= nth+1; n++ {
			t.Run(fmt.Sprint(op, n), func(t *testing.T) {
				w := &world{}
				removed := false
				disk := newMeddle(op, n, func() { removed = os.RemoveAll(w.in(".lockkeeper")) == nil })
				*w = *newWorld(t, map[string]string{"test/a": "old", "test/b": "old"}, gate.Options{Disk: disk})
				g := w.hold("otter", "test/a", "test/b", "test/c")
				disk.armed = true
				l, err := w.gate.Commit(t.Context(), &g.Grant, []gate.Change{gate.Put("test/a", []byte("new")), gate.Put("test/b", []byte("new")), gate.Put("test/c", []byte("new"))})
				if (l == nil) == (err == nil) {
					t.Errorf("landing %v and error %v", l, err)
				}
				if !removed {
					t.Fatal("nothing was removed")
				}
				w.releases(g)
				for path, content := range w.files() {
					if content != "new" && (l != nil || content != "old") {
						t.Errorf("%s holds %q", path, content)
					}
				}
				again := w.hold("heron", "test/a")
				if _, err := w.gate.Write(t.Context(), &again.Grant, "test/a", []byte("newer")); lockkeeper.CodeOf(err) != lockkeeper.CodeStore || !strings.Contains(err.Error(), "removed") {
					t.Errorf("unclear: %v", err)
				}
				w.releases(again)
			})
		}
	}
}

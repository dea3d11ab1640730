package gate_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/durable"
	"lockkeeper/durable/durabletest"
	"lockkeeper/gate"
	"lockkeeper/lock"
	"lockkeeper/store"
	"lockkeeper/store/sqlstore"
)

// atMaps allows writes where the tests of whole directories need them.
var atMaps = gate.Options{Allowed: []string{"maps"}}

// holdDir acquires a grant on whole directories, which policy dal permits.
func (w *world) holdDir(dirs ...string) *lock.Grant {
	w.t.Helper()
	req := lockkeeper.Request{Holder: "cartographer", Policy: "dal"}
	for _, dir := range dirs {
		req.Locks = append(req.Locks, lockkeeper.Lock{Target: lockkeeper.Target{Path: dir, Kind: lockkeeper.Dir}, Mode: lockkeeper.Write})
	}
	g, err := w.locks.TryAcquire(w.t.Context(), req)
	must(w.t, err)
	return g
}

// filled returns a function that writes files into a directory, content by path.
func filled(files map[string]string) func(string) error {
	return func(dir string) error {
		for path, content := range files {
			path = filepath.Join(dir, path)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
				return err
			}
		}
		return nil
	}
}

func (w *world) replace(g *lock.Grant, target, final string, files map[string]string) *lockkeeper.Landing {
	w.t.Helper()
	l, err := w.gate.ReplaceDir(w.t.Context(), &g.Grant, target, final, filled(files))
	must(w.t, err)
	return l
}

// noDrafts checks that no draft is left below a target.
func (w *world) noDrafts(target string) {
	w.t.Helper()
	entries, err := os.ReadDir(w.in(target + "/tmp"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.t.Error(err)
	}
	for _, e := range entries {
		w.t.Errorf("%s/tmp/%s was left behind", target, e.Name())
	}
}

func checkReplaceDir(t *testing.T, w *world) {
	g := w.holdDir("maps/m1")
	first := w.replace(g, "maps/m1", "current", map[string]string{"index": "1", "tiles/0/0": "1"})
	w.want(map[string]string{"maps/m1/current/index": "1", "maps/m1/current/tiles/0/0": "1"})
	if c := first.Changes[0]; first.State != lockkeeper.Decided && first.State != lockkeeper.Committed || c.Old.Exists() || c.New.Kind != lockkeeper.Dir || c.Path != "maps/m1/current" {
		t.Errorf("landing %+v", first)
	}
	if got, err := w.gate.Landing(t.Context(), first.Seq); err != nil || got.State != lockkeeper.Committed {
		t.Errorf("the manifest says %v, %v", got, err)
	}
	if same, err := w.gate.ReplaceDir(t.Context(), &g.Grant, "maps/m1", "current", filled(map[string]string{"index": "1", "tiles/0/0": "1"})); err != nil || same != nil {
		t.Errorf("the same again: %v, %v", same, err)
	}
	second := w.replace(g, "maps/m1/", "current", map[string]string{"index": "2"})
	w.want(map[string]string{"maps/m1/current/index": "2"})
	if second.Changes[0].Old != first.Changes[0].New {
		t.Errorf("the second replaced %s, the first left %s", second.Changes[0].Old, first.Changes[0].New)
	}
	// The displaced directory is kept whole.
	kept, err := filepath.Glob(w.in(".lockkeeper/kept/*/" + second.Commit + "/*.0/tiles/0/0"))
	if err != nil || len(kept) != 1 {
		t.Errorf("the directory as it was is not kept: %v, %v", kept, err)
	}
	// Undoing the second brings the whole first version back, and undoing that again the second.
	undo := func(seq uint64) *lockkeeper.Landing {
		t.Helper()
		l, err := w.gate.Undo(t.Context(), &g.Grant, seq)
		must(t, err)
		if l.Undoes != seq {
			t.Errorf("it says that it undoes %d, want %d", l.Undoes, seq)
		}
		return l
	}
	third := undo(second.Seq)
	w.want(map[string]string{"maps/m1/current/index": "1", "maps/m1/current/tiles/0/0": "1"})
	if third.Changes[0].New != first.Changes[0].New {
		t.Errorf("undo left %s, the first version was %s", third.Changes[0].New, first.Changes[0].New)
	}
	if _, err := w.gate.Undo(t.Context(), &g.Grant, second.Seq); lockkeeper.CodeOf(err) != lockkeeper.CodeRefused {
		t.Errorf("undone twice: %v", err)
	}
	undo(undo(third.Seq).Seq)
	// Undoing the first removes the directory, and undoing that brings it back.
	removed := undo(first.Seq)
	w.want(map[string]string{})
	if _, err := os.Lstat(w.in("maps/m1/current")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory that it created is still there: %v", err)
	}
	last := undo(removed.Seq)
	w.want(map[string]string{"maps/m1/current/index": "1", "maps/m1/current/tiles/0/0": "1"})
	// A file that was changed since is not overwritten.
	must(t, os.WriteFile(w.in("maps/m1/current/index"), []byte("theirs"), 0o644))
	if _, err := w.gate.Undo(t.Context(), &g.Grant, last.Seq); lockkeeper.CodeOf(err) != lockkeeper.CodeRefused || !strings.Contains(err.Error(), "changed since, outside the gate") {
		t.Errorf("undo over an edit: %v", err)
	}
	w.want(map[string]string{"maps/m1/current/index": "theirs", "maps/m1/current/tiles/0/0": "1"})
	w.noStages()
	w.noDrafts("maps/m1")
	w.releases(g)
}

// shows: DL-46 DL-47 DL-49
func TestReplaceDir(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		checkReplaceDir(t, newWorld(t, map[string]string{"maps/m1/x": ""}, atMaps).without("maps/m1/x"))
	})
	t.Run("sqlite", func(t *testing.T) {
		w := &world{t: t, dir: t.TempDir()}
		must(t, os.MkdirAll(w.in("maps/m1"), 0o755), os.Mkdir(w.in(".lockkeeper"), 0o700))
		db := w.in(".lockkeeper/locks.db")
		must(t, sqlstore.CreateSQLite(t.Context(), db, space))
		st, err := sqlstore.OpenSQLite(t.Context(), db, space, sqlstore.Options{})
		must(t, err)
		t.Cleanup(func() { must(t, st.Close()) })
		w.store = st
		w.open(atMaps)
		checkReplaceDir(t, w)
	})
}

func (w *world) without(path string) *world {
	w.t.Helper()
	must(w.t, os.Remove(w.in(path)))
	return w
}

// A reader finds the old or the new directory during a replacement, never a mixture or nothing.
//
// shows: DL-49 GP-31
func TestReplaceDirIsNeverAbsent(t *testing.T) {
	w := newWorld(t, map[string]string{"maps/m1/current/a": "0", "maps/m1/current/b": "0"}, atMaps)
	g := w.holdDir("maps/m1")
	var done atomic.Bool
	var wg sync.WaitGroup
	read := 0
	wg.Go(func() {
		for ; !done.Load(); read++ {
			dir, err := os.OpenRoot(w.in("maps/m1/current")) // opens the path at an arbitrary moment
			if err != nil {
				t.Error("absent:", err)
				return
			}
			a, errA := dir.ReadFile("a")
			b, errB := dir.ReadFile("b")
			if err := errors.Join(errA, errB, dir.Close()); err != nil || string(a) != string(b) {
				t.Errorf("read %q and %q, %v", a, b, err)
				return
			}
		}
	})
	for n := range 50 {
		w.replace(g, "maps/m1", "current", map[string]string{"a": fmt.Sprint(n + 1), "b": fmt.Sprint(n + 1)})
	}
	done.Store(true)
	wg.Wait()
	t.Logf("%d reads", read)
	w.want(map[string]string{"maps/m1/current/a": "50", "maps/m1/current/b": "50"})
	w.releases(g)
}

// shows: DL-46 DL-48 DL-51 DL-83
func TestReplaceDirRefused(t *testing.T) {
	w := newWorld(t, map[string]string{"maps/m1/current/a": "old", "maps/m1/file": "f", "maps/m2/current/a": "old", "lib/current/a": "old", "maps/m3/tmp": "a file"}, atMaps)
	outside := t.TempDir()
	must(t, os.Symlink(outside, w.in("maps/m1/link")))
	g := w.holdDir("maps/m1", "lib", "maps/m3", "maps/gone")
	single := w.hold("otter", "maps/m2")
	replace := func(grant *lock.Grant, target, final string, fill func(string) error) func() error {
		return func() error {
			_, err := w.gate.ReplaceDir(t.Context(), &grant.Grant, target, final, fill)
			return err
		}
	}
	fine := filled(map[string]string{"a": "new"})
	must(t, os.Mkdir(w.in("maps/m1/tmp"), 0o755)) // every target has this directory after its first replacement
	failure := errors.New("the source is gone")
	w.harmless("fill fails", replace(g, "maps/m1", "current", func(dir string) error {
		return errors.Join(fine(dir), failure)
	}), failure.Error(), "nothing was replaced")
	w.harmless("fill plants a link", replace(g, "maps/m1", "current", func(dir string) error { return os.Symlink("/etc", filepath.Join(dir, "x")) }), "neither a file nor a directory")
	w.harmless("fill plants a FIFO", replace(g, "maps/m1", "current", func(dir string) error { return unix.Mkfifo(filepath.Join(dir, "x"), 0o644) }), "neither a file nor a directory")
	w.harmless("fill removes the draft", replace(g, "maps/m1", "current", os.RemoveAll), "nothing was replaced")
	w.harmless("final is a file", replace(g, "maps/m1", "file", fine), "file")
	w.harmless("final is a link", replace(g, "maps/m1", "link", fine), "leaves the root")
	for _, final := range []string{"", ".", "..", "a/b", "../m2", "tmp", "/etc", ".git", ".lockkeeper", "a\x00b"} {
		w.harmless(fmt.Sprintf("final %q", final), replace(g, "maps/m1", final, fine))
	}
	w.harmless("target is a file", replace(g, "maps/m1/file", "current", fine), "file")
	w.harmless("target is missing", replace(g, "maps/gone", "current", fine), "no such directory")
	w.harmless("target outside", replace(g, "..", "current", fine), "..")
	w.harmless("outside of the allowlist", replace(g, "lib", "current", fine), "allowlist")
	w.harmless("tmp is a file", replace(g, "maps/m3", "current", fine), "tmp")
	w.harmless("not held", replace(g, "maps/m2", "current", fine), "(coverage)", "otter")
	w.harmless("held as a file", replace(single, "maps/m2", "current", fine), "(coverage)", "as a file")
	w.harmless("no grant", replace(&lock.Grant{}, "maps/m1", "current", fine), "(grant)")
	w.releases(single)
	w.harmless("released", replace(single, "maps/m2", "current", fine), "(grant)")
	for _, target := range []string{"maps/m1", "maps/m2"} {
		w.noDrafts(target)
	}
	must(t, w.store.View(t.Context(), func(r store.Reader) error {
		rows, err := r.Landings(store.LandingQuery{})
		if len(rows) > 0 {
			t.Errorf("the database was written to: %+v", rows)
		}
		return err
	}))
	w.releases(g)
}

// A draft outside the allowlist is not written, even for a moment.
func TestReplaceDirDraftIsAllowed(t *testing.T) {
	w := newWorld(t, map[string]string{"maps/m1/current/a": "old"}, gate.Options{Allowed: []string{"maps/m1/current"}})
	g := w.holdDir("maps/m1")
	w.harmless("draft outside of the allowlist", func() error {
		_, err := w.gate.ReplaceDir(t.Context(), &g.Grant, "maps/m1", "current", filled(map[string]string{"a": "new"}))
		return err
	}, "allowlist", "maps/m1/tmp")
	w.releases(g)
}

// An otherDevice is a disk on which drafts appear to be on another device.
type otherDevice struct{ durable.OSDisk }

func (d otherDevice) Lstat(at *os.File, name string) (durable.Stat, error) {
	st, err := d.OSDisk.Lstat(at, name)
	if filepath.Base(filepath.Clean(at.Name())) == "tmp" {
		st.Dev++
	}
	return st, err
}

// shows: DL-48
func TestReplaceDirOnAnotherDevice(t *testing.T) {
	opt := atMaps
	opt.Disk = otherDevice{}
	w := newWorld(t, map[string]string{"maps/m1/current/a": "old"}, opt)
	must(t, os.Mkdir(w.in("maps/m1/tmp"), 0o755))
	g := w.holdDir("maps/m1")
	w.harmless("another device", func() error {
		_, err := w.gate.ReplaceDir(t.Context(), &g.Grant, "maps/m1", "current", filled(map[string]string{"a": "new"}))
		return err
	}, "another device")
	if landed := w.events(lockkeeper.EventLanded); len(landed) > 0 {
		t.Errorf("decided all the same: %v", landed)
	}
	w.noDrafts("maps/m1")
	w.releases(g)
}

// An edit in the directory between the last check and the exchange belongs to another writer.
// The directory keeps that edit.
func TestReplaceDirConflictsWithAnEdit(t *testing.T) {
	w := &world{}
	disk := newMeddle(durabletest.Exchange, 1, func() { must(t, os.WriteFile(w.in("maps/m1/current/b"), []byte("theirs"), 0o644)) })
	opt := atMaps
	opt.Disk = disk
	*w = *newWorld(t, map[string]string{"maps/m1/current/a": "old"}, opt)
	g := w.holdDir("maps/m1")
	disk.armed = true
	_, err := w.gate.ReplaceDir(t.Context(), &g.Grant, "maps/m1", "current", filled(map[string]string{"a": "new"}))
	w.refused(err, "base", "maps/m1/current")
	w.want(map[string]string{"maps/m1/current/a": "old", "maps/m1/current/b": "theirs"})
	w.noStages()
	w.noDrafts("maps/m1")
	w.releases(g)
}

// At whichever operation the writer dies, recovery completes a decided replacement, or the undo
// of one, and removes any other.
//
// shows: DL-49 GP-31
func TestReplaceDirAbandoned(t *testing.T) {
	inMemory(t)
	before := map[string]string{"maps/m1/current/a": "old", "maps/m1/current/b": "old"}
	after := map[string]string{"maps/m1/current/a": "new"}
	replace := func(w *world, g *lock.Grant) error {
		_, err := w.gate.ReplaceDir(w.t.Context(), &g.Grant, "maps/m1", "current", filled(map[string]string{"a": "new"}))
		return err
	}
	undo := func(w *world, g *lock.Grant) error {
		landed := w.events(lockkeeper.EventLanded)
		_, err := w.gate.Undo(w.t.Context(), &g.Grant, landed[len(landed)-1].Seq)
		return err
	}
	for name, c := range map[string]struct {
		old, new map[string]string
		prepare  func(w *world, g *lock.Grant) error // before the writer that dies
		act      func(w *world, g *lock.Grant) error
	}{
		"replace": {before, after, nil, replace},
		"restore": {after, before, replace, undo},
		"remove":  {after, map[string]string{}, replace, undo},
	} {
		t.Run(name, func(t *testing.T) {
			var states []string
			for k, more := 0, true; more; k++ {
				t.Run(fmt.Sprint(k), func(t *testing.T) {
					planted := before
					if name == "remove" {
						planted = map[string]string{"maps/m1/x": ""}
					}
					w := newWorld(t, planted, atMaps)
					if name == "remove" {
						w.without("maps/m1/x")
					}
					g := w.holdDir("maps/m1")
					if c.prepare != nil {
						must(t, c.prepare(w, g))
					}
					disk := &durabletest.FaultyDisk{}
					opt := atMaps
					opt.Disk = disk
					w.open(opt)
					disk.CrashAt(len(disk.Trace()) + k)
					more = c.act(w, g) != nil
					w.open(atMaps) // this process has not crashed
					if _, err := w.locks.Release(t.Context(), g.ID, g.Token); err != nil {
						t.Error(err)
					}
					if _, err := w.gate.Recover(t.Context()); err != nil {
						t.Error(err)
					}
					w.noStages()
					w.noDrafts("maps/m1")
					switch files := w.files(); {
					case maps.Equal(files, c.old):
						states = append(states, "old")
					case maps.Equal(files, c.new):
						states = append(states, "new")
					default:
						t.Errorf("neither old nor new: %v", files)
					}
					if e, err := w.locks.Request(t.Context(), g.ID); err != nil || e != nil {
						t.Errorf("the grant is still there: %v, %v", e, err)
					}
				})
			}
			if slices.Index(states, "old") < 0 || slices.Index(states, "new") < 0 || !slices.IsSortedFunc(states, func(a, b string) int { return strings.Compare(b, a) }) {
				t.Errorf("states %v, want old ones and then new ones", states)
			}
		})
	}
}

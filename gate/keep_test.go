package gate_test

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/internal/machine/machinetest"
	"lockkeeper/store"
)

// onShelf returns all content on the shelf, of any kind, by path.
func (w *world) onShelf() map[string][]string {
	w.t.Helper()
	list, err := w.gate.Rescue().List(context.WithoutCancel(w.t.Context()))
	must(w.t, err)
	out := map[string][]string{}
	for _, e := range list {
		if e.Sum == "" {
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

// nothingLost checks that the new content of every change is in the tree or on the shelf.
func (w *world) nothingLost(changes []gate.Change) {
	w.t.Helper()
	tree, shelf := w.files(), w.onShelf()
	for _, c := range changes {
		if c.Body == nil {
			continue
		}
		body, err := c.Body()
		must(w.t, err)
		content, err := io.ReadAll(body)
		must(w.t, err, body.Close())
		if tree[c.Path] != string(content) && !slices.Contains(shelf[c.Path], string(content)) {
			w.t.Errorf("the new content of %s is neither in the tree nor on the shelf", c.Path)
		}
	}
}

// immutableFlag is FS_IMMUTABLE_FL of linux/fs.h.
const immutableFlag = 0x10

// immutable sets or clears the immutable flag of a file.
func immutable(t *testing.T, path string, on bool) {
	t.Helper()
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	flags, err := unix.IoctlGetUint32(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err == nil {
		flags &^= immutableFlag
		if on {
			flags |= immutableFlag
		}
		err = unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, int(flags))
	}
	if err != nil && on {
		machinetest.Lacks(t, "no immutable files here: %v", err)
	}
}

// If the operating system does not let a file be replaced, the landing is rolled back. The
// content is on the shelf, and the other files can land without it.
func TestImmutableFile(t *testing.T) {
	if os.Geteuid() != 0 {
		machinetest.Lacks(t, "only root can make a file immutable")
	}
	w := newWorld(t, map[string]string{"test/a": "old", "test/b": "old"}, gate.Options{})
	immutable(t, w.in("test/b"), true)
	t.Cleanup(func() { immutable(t, w.in("test/b"), false) })
	changes := []gate.Change{gate.Put("test/a", []byte("new a")), gate.Put("test/b", []byte("new b")), gate.Put("test/c", []byte("new c"))}
	g := w.hold("otter", "test/a", "test/b", "test/c")
	w.harmless("an immutable file", func() error {
		_, err := w.gate.Commit(t.Context(), &g.Grant, changes)
		return err
	}, "test/b", "not permit", "rescue show")
	w.nothingLost(changes)

	l, refused, err := w.gate.Apply(t.Context(), &g.Grant, changes)
	if err != nil || l == nil || len(refused) != 1 || !strings.Contains(refused[0].Error(), "test/b") {
		t.Fatalf("landed %v, refused %v, error %v", l, refused, err)
	}
	w.want(map[string]string{"test/a": "new a", "test/b": "old", "test/c": "new c"})
	w.nothingLost(changes)
	w.releases(g)
}

// A brittle store fails its updates once broken is set.
type brittle struct {
	store.Store
	broken bool
}

func (b *brittle) Update(ctx context.Context, do func(store.Tx) error) error {
	if b.broken {
		return &lockkeeper.StoreError{Store: "test", Reason: "it is broken"}
	}
	return b.Store.Update(ctx, do)
}

// If the store fails when the landing is decided, or the caller cancels, the content is on the
// shelf.
func TestStoreFailsAtTheDecision(t *testing.T) {
	w := newWorld(t, map[string]string{"test/a": "old"}, gate.Options{})
	st := &brittle{Store: w.store}
	w.store = st
	w.open(gate.Options{})
	changes := []gate.Change{gate.Put("test/a", []byte("new a")), gate.Put("test/b", []byte("new b"))}
	g := w.hold("otter", "test/a", "test/b")
	st.broken = true
	_, err := w.gate.Commit(t.Context(), &g.Grant, changes)
	if lockkeeper.CodeOf(err) != lockkeeper.CodeStore || !strings.Contains(err.Error(), "rescue list") {
		t.Errorf("error %v", err)
	}
	w.nothingLost(changes)
	st.broken = false
	_, err = w.gate.Recover(t.Context())
	must(t, err)
	w.noStages()
	w.want(map[string]string{"test/a": "old"})
	w.nothingLost(changes)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	one := []gate.Change{gate.Put("test/a", []byte("given up"))}
	if _, err := w.gate.Commit(ctx, &g.Grant, one); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	w.nothingLost(one)
	w.releases(g)
}

// If the replacement of a directory is refused or rolled back, the whole new directory is kept.
func TestRefusedDirectoryIsKept(t *testing.T) {
	w := newWorld(t, map[string]string{"test/dir/live/f": "old"}, gate.Options{})
	g, err := w.locks.TryAcquire(t.Context(), lockkeeper.Request{Holder: "otter", Policy: "dal",
		Locks: []lockkeeper.Lock{{Target: lockkeeper.Target{Path: "test/dir", Kind: lockkeeper.Dir}, Mode: lockkeeper.Write}}})
	must(t, err)
	_, err = w.gate.ReplaceDir(t.Context(), &g.Grant, "test/dir", "live", func(dir string) error {
		must(t, g.Release(t.Context())) // the grant is lost while the directory is filled
		return os.WriteFile(dir+"/f", []byte("new"), 0o644)
	})
	if lockkeeper.CodeOf(err) != lockkeeper.CodeViolation {
		t.Fatalf("error %v", err)
	}
	kept := w.onShelf()["test/dir/live"]
	if len(kept) != 1 {
		t.Fatalf("on the shelf: %q", w.onShelf())
	}
	at := strings.TrimSpace(strings.TrimPrefix(kept[0], "kept as it was in "))
	if content, err := os.ReadFile(w.in(at + "/f")); err != nil || string(content) != "new" {
		t.Errorf("%s: %q, %v", at, content, err)
	}
	w.want(map[string]string{"test/dir/live/f": "old"})
	w.noStages()

	// It can be landed from the shelf, over the directory as it was.
	list, err := w.gate.Rescue().List(t.Context())
	must(t, err)
	again := w.holdDir("test/dir")
	must(t, os.WriteFile(w.in("test/dir/live/g"), []byte("theirs"), 0o644))
	_, err = w.gate.LandKeptDir(t.Context(), &again.Grant, list[0], false)
	w.refused(err, "base", "test/dir/live")
	w.want(map[string]string{"test/dir/live/f": "old", "test/dir/live/g": "theirs"})
	must(t, os.Remove(w.in("test/dir/live/g")))
	_, err = w.gate.LandKeptDir(t.Context(), &again.Grant, list[0], false)
	must(t, err)
	w.want(map[string]string{"test/dir/live/f": "new"})
	w.releases(again)
}

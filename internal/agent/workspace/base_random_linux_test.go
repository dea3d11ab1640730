package workspace

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// nodesOf returns the copied state without what a later process does not need.
func nodesOf(w *Workspace) map[string]entry {
	all := map[string]entry{}
	w.base.each(".", func(p string, n *node) { e := n.entry; e.Young, e.Origin = false, stamp{}; all[p] = e })
	return all
}

// What a later process adopts is what was kept.
func TestBaseAdoptsRandomWork(t *testing.T) {
	for range 12 {
		seed := uint64(time.Now().UnixNano())
		root := t.TempDir()
		people := &editor{t: t, rand: rand.New(rand.NewPCG(seed, 2)), root: root}
		for range 40 {
			people.step()
		}
		b := newBase(t, Options{Root: root})
		for range 3 {
			must(t, b.Prepare(t.Context()))
			for range 6 {
				people.step()
			}
		}
		w, err := b.Make(t.Context(), nil)
		must(t, err)
		for range 3 {
			agent := &editor{t: t, rand: people.rand, root: tree(t, w)}
			for range 10 {
				agent.step()
			}
			for range 10 {
				people.step()
			}
			_, _, err = w.Refresh(t.Context(), []string{"."})
			must(t, err)
		}
		had, err := w.Changes(t.Context())
		must(t, err)
		nodes := nodesOf(w)
		must(t, w.Close(t.Context(), true))
		w, err = Adopt(w.Home(), nil)
		must(t, err)
		must(t, w.fault)
		got := nodesOf(w)
		if !reflect.DeepEqual(got, nodes) {
			for p := range nodes {
				if _, ok := got[p]; !ok {
					t.Errorf("seed %d lost %s", seed, p)
				}
			}
			for p, e := range got {
				if was, ok := nodes[p]; !ok || was != e {
					t.Errorf("seed %d differs %s %v: %+v %+v", seed, p, ok, was, e)
				}
			}
		}
		now, err := w.Changes(t.Context())
		must(t, err)
		if !reflect.DeepEqual(had, now) {
			t.Errorf("seed %d: changes %v before, %v after", seed, had, now)
		}
		takeAll(t, w)
		wantChanges(t, w)
		must(t, w.Close(t.Context(), false))
	}
}

// An agent cannot make a file look removed or a directory look new by the marks of the kernel.
func TestBaseMarksCannotBeForged(t *testing.T) {
	w := on(t, newBase(t, Options{Root: base(t)}))
	dir := tree(t, w)
	for _, mark := range []struct{ path, name, text string }{
		{"dir", "opaque", "y"}, {"a.rb", "whiteout", "y"}, {"a.rb", "redirect", "/upper"}, {"a.rb", "metacopy", "y"},
	} {
		unix.Setxattr(filepath.Join(dir, mark.path), "user.overlay."+mark.name, []byte(mark.text), 0) // refused, or kept under another name
	}
	if err := unix.Mknod(filepath.Join(dir, "white"), unix.S_IFCHR, 0); err == nil {
		t.Error("a whiteout was made")
	}
	wantChanges(t, w)
	same(t, "the workspace", contents(t, tree(t, w)), contents(t, w.Root()))
}

// All methods of workspaces run at once while layers are added.
func TestBaseOfManyThatWork(t *testing.T) {
	root := newRepository(t)
	l := &landings{t: t, root: root, paths: map[uint64][]string{}}
	b := newBase(t, Options{Root: root, Landed: l.after, Sums: NewSums()})
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			for j := range 4 {
				path := fmt.Sprintf("own/%d/%d", i, j)
				write(t, root, path, path)
				w, err := b.Make(t.Context(), []string{path})
				if err != nil {
					t.Error(err)
					return
				}
				f, e0 := w.Open(path)
				if e0 == nil {
					e0 = f.Close()
				}
				_, e1 := w.Outside(t.Context())
				e2 := w.Put(t.Context(), path, 0o600, strings.NewReader("mine"))
				_, e3 := w.Changes(t.Context())
				_, _, e4 := w.Refresh(t.Context(), []string{"."})
				_, e5 := w.TakeOut(t.Context(), []string{"."})
				if err := errors.Join(e0, e1, e2, e3, e4, e5, w.Restore(t.Context()), w.Close(context.Background(), false)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

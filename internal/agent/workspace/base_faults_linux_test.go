package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// An endingContext is canceled as soon as a file exists.
type endingContext struct {
	context.Context
	file string
}

func (c endingContext) ended() bool { _, err := os.Lstat(c.file); return err == nil }

func (c endingContext) Done() <-chan struct{} {
	done := make(chan struct{})
	if c.ended() {
		close(done)
	}
	return done
}

func (c endingContext) Err() error {
	if c.ended() {
		return context.Canceled
	}
	return nil
}

// A caller that gives up at the end of the copy leaves a base that the next caller can make.
func TestBaseAfterCanceledCopy(t *testing.T) {
	b := newBase(t, Options{Root: newRepository(t)})
	ctx := endingContext{t.Context(), filepath.Join(b.dir, "0", manifestName)}
	if err := b.Prepare(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v", err)
	}
	on(t, b)
}

// A change that a failed scan found is in the next workspace.
func TestBaseScansAgainAfterAFailure(t *testing.T) {
	root, fail := base(t), false
	b := newBase(t, Options{Root: root, Landed: func(context.Context, uint64) ([]string, uint64, error) {
		if fail {
			return nil, 0, errors.New("the store is unreachable")
		}
		return nil, 0, nil
	}})
	must(t, b.Prepare(t.Context()))
	write(t, root, "a.rb", "changed by a person")
	asked := time.Now() // two callers ask, and the second one waits for the first one
	fail = true
	b.mu.Lock()
	err := b.advance(t.Context(), nil, asked)
	fail = false
	if err == nil {
		t.Fatal("no error")
	}
	err = b.advance(t.Context(), nil, asked)
	s := b.now
	b.mu.Unlock()
	must(t, err)
	w, err := createOn(s, b.o, b.o.Dir+"/0123456789ab")
	must(t, err)
	must(t, w.save())
	defer w.Close(t.Context(), false)
	if got := read(t, tree(t, w), "a.rb"); got != "changed by a person" {
		t.Errorf("the second caller has %q", got)
	}
}

// A write through mapped memory is in the next workspace, although the stat of the file is the same.
func TestBaseFollowsMappedWrites(t *testing.T) {
	root := base(t)
	f, err := os.OpenFile(filepath.Join(root, "a.rb"), os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	info, err := f.Stat()
	must(t, err)
	data, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	must(t, err)
	defer unix.Munmap(data)
	data[0] = '1'
	b := newBase(t, Options{Root: root})
	on(t, b)
	data[0] = '2'
	if got, want := read(t, tree(t, on(t, b)), "a.rb"), read(t, root, "a.rb"); got != want {
		t.Errorf("the workspace has %q instead of %q", got, want)
	}
}

// A commit during the first copy is in the next workspace.
func TestBaseFollowsACommitDuringTheCopy(t *testing.T) {
	root := newRepository(t)
	b := newBase(t, Options{Root: root})
	next := strings.TrimSpace(git(t, root, "commit-tree", "-p", "HEAD", "-m", "next", "HEAD^{tree}"))
	ref := filepath.Join(root, ".git/refs/heads/main")
	must(t, os.WriteFile(ref+".lock", []byte(next+"\n"), 0o644))
	stop := make(chan bool)
	done := make(chan bool)
	go func() { // commits when the private repository is complete
		defer close(done)
		for copying := true; copying; {
			select {
			case <-stop:
				copying = false
			default:
				_, err := os.Lstat(filepath.Join(b.dir, "0", manifestName))
				copying = err != nil
			}
		}
		if err := os.Rename(ref+".lock", ref); err != nil {
			t.Error(err)
		}
	}()
	must(t, b.Prepare(t.Context()))
	close(stop)
	<-done
	w := on(t, b)
	if got := strings.TrimSpace(git(t, tree(t, w), "rev-parse", "HEAD")); got != next || w.Commit() != next {
		t.Errorf("HEAD is %s, Commit %s, and should be %s", got, w.Commit(), next)
	}
}

// A file that the agent removed is missing for Open, on layers as in a copy.
func TestOpenRemoved(t *testing.T) {
	w := open(t, Options{Root: base(t)})
	must(t, os.Remove(filepath.Join(tree(t, w), "a.rb")))
	if f, err := w.Open("a.rb"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, %v", f, err)
	}
}

// A base stays while a workspace on it has a manifest that this program cannot read.
func TestBaseOfUnreadableManifest(t *testing.T) {
	root, dir := base(t), filepath.Join(t.TempDir(), "workspaces")
	b := newBase(t, Options{Root: root, Dir: dir})
	w, err := b.Make(t.Context(), nil)
	must(t, err)
	must(t, w.Close(t.Context(), true))
	manifest := filepath.Join(w.Home(), manifestName)
	must(t, os.Rename(manifest, manifest+".later")) // for example, a newer program raised the format
	must(t, os.WriteFile(manifest, []byte("a later format"), 0o600))
	must(t, b.Close(t.Context()))
	must(t, os.Rename(manifest+".later", manifest))
	again, err := Adopt(w.Home(), nil)
	must(t, err)
	defer again.Close(t.Context(), false)
	wantChanges(t, again)
}

// A process that removes bases leaves the base of a workspace that another process keeps meanwhile.
func TestBasesAreRemovedByTwo(t *testing.T) {
	root, dir := base(t), filepath.Join(t.TempDir(), "workspaces")
	stop, done := make(chan bool), make(chan bool)
	b := newBase(t, Options{Root: root, Dir: dir})
	for range 60 { // what kept workspaces of earlier runs cost
		w, err := b.Make(t.Context(), nil)
		must(t, err)
		must(t, w.Close(t.Context(), true))
	}
	go func() { // another process
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				removeBases(t.Context(), dir, "")
			}
		}
	}()
	defer func() { close(stop); <-done }()
	for i := range 100 {
		c, err := NewBase(t.Context(), Options{Root: root, Dir: dir})
		must(t, err)
		must(t, c.Prepare(t.Context()))
		w, err := c.Make(t.Context(), nil)
		must(t, err)
		must(t, w.Close(t.Context(), true))
		unlock(c.lock) // as if the process was killed
		closeFD(c.lock)
		time.Sleep(5 * time.Millisecond)
		again, err := Adopt(w.Home(), nil)
		must(t, err)
		if again.fault != nil {
			t.Fatalf("round %d: the kept workspace is lost: %v", i, again.fault)
		}
		must(t, again.Close(t.Context(), false))
	}
}

// The time that the copy took does not delay the first scan of a large tree.
func TestBaseScansAfterALongCopy(t *testing.T) {
	root, calls := base(t), 0
	b := newBase(t, Options{Root: root, Landed: func(context.Context, uint64) ([]string, uint64, error) {
		if calls++; calls == 1 {
			time.Sleep(500 * time.Millisecond) // the copy of a large tree takes minutes
		}
		return nil, 0, nil
	}})
	must(t, b.Prepare(t.Context()))
	b.names = fewNames + 1
	write(t, root, "a.rb", "changed")
	if got := read(t, tree(t, on(t, b)), "a.rb"); got != "changed" {
		t.Errorf("read %q", got)
	}
}

package gate

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"lockkeeper"
)

// stage is the directory of a landing's own through which its changes pass: the
// writer's, or the one into which a recovery has moved it. Change n of the
// landing is its entry n: the new content before, the old one after. Whatever is in
// it has the commit in its name, so that whoever is late with one commit touches
// nothing of another that uses the same directory.
type stage struct {
	g      *Gate
	in     *os.File
	name   string
	commit string
	dir    *os.File

	draft *draft // instead of entry 0; nil for files
}

// at is where the entry of a change is.
func (s *stage) at(n int) (*os.File, string) {
	if s.draft != nil {
		return s.draft.in, s.draft.name
	}
	return s.dir, s.entry(strconv.Itoa(n))
}

// entry names something in the stage.
func (s *stage) entry(name string) string { return s.commit + "." + name }

// newID makes a name that nothing else has.
func newID() string {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// stageName is what the stage of a landing is called.
func stageName(grantID string, fence uint64, commit string) string {
	if grantID == "" {
		grantID = "none"
	}
	return grantID + "." + itoa(fence) + "." + commit
}

// makeStage makes a stage with a new name. It stays locked while its maker lives,
// so that others can tell an abandoned one. A spare one is as good as new. One that
// is cleared away before it is locked is given up for another.
func (g *Gate) makeStage(in *os.File, newName func() string) (*stage, error) {
	for {
		name := newName()
		if in == g.stages {
			if s, err := g.takeSpare(name); s != nil || err != nil {
				return s, err
			}
		}
		if err := g.disk.Mkdir(in, name, 0o700); errors.Is(err, fs.ErrNotExist) {
			return nil, &lockkeeper.StoreError{Store: filepath.Join(g.paths.Dir(), stateDir), Reason: "it was removed while the gate was open", Err: err,
				Next: "lockkeeper init makes it again; then start again whatever uses it"}
		} else if err != nil {
			return nil, err
		}
		dir, err := g.disk.OpenDir(in, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		s := &stage{g: g, in: in, name: name, commit: commitOf(name), dir: dir}
		ours, err := lockStage(dir, unix.LOCK_SH)
		if err == nil && ours {
			return s, nil
		}
		s.close()
		if err != nil {
			return nil, err
		}
	}
}

// lockStage locks a stage if nobody else has, and if it is still there.
func lockStage(dir *os.File, how int) (bool, error) {
	conn, err := dir.SyscallConn()
	if err != nil {
		return false, err
	}
	var st unix.Stat_t
	var result error
	err = conn.Control(func(fd uintptr) {
		if result = unix.Flock(int(fd), how|unix.LOCK_NB); result == nil {
			result = unix.Fstat(int(fd), &st)
		}
	})
	if errors.Is(result, unix.EWOULDBLOCK) {
		return false, nil
	}
	return st.Nlink > 0, errors.Join(err, result)
}

// claim opens and locks a stage on which nobody alive works. It is nil when
// somebody does, which busy says, or when it is gone.
func (g *Gate) claim(in *os.File, name string) (s *stage, busy bool, err error) {
	dir, err := g.disk.OpenDir(in, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	s = &stage{g: g, in: in, name: name, commit: commitOf(name), dir: dir}
	abandoned, err := lockStage(dir, unix.LOCK_EX)
	if err == nil && abandoned {
		return s, false, nil
	}
	s.close()
	if err != nil {
		return nil, false, err
	}
	_, err = g.disk.Lstat(in, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	return nil, err == nil, err
}

// fill stages the new content of all items, several at once, because the disk
// makes many files durable in little more time than one.
func (s *stage) fill(items []*item) error {
	return together(len(items), func(i int) error {
		if items[i].Delete {
			return nil
		}
		return s.put(i, items[i])
	})
}

// atOnce bounds how many files are synced side by side.
const atOnce = 16

// together calls do for 0 to n-1, some at once, and returns the first error.
func together(n int, do func(int) error) error {
	if n == 1 {
		return do(0)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var first error
	next := 0
	take := func() (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		if first != nil || next == n {
			return 0, false
		}
		next++
		return next - 1, true
	}
	for range min(n, atOnce) {
		wg.Go(func() {
			for i, ok := take(); ok; i, ok = take() {
				if err := do(i); err != nil {
					mu.Lock()
					if first == nil {
						first = err
					}
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return first
}

// put writes one file into the stage, durable but for its name, and learns its
// version.
func (s *stage) put(n int, it *item) (err error) {
	body, err := it.open()
	if err != nil {
		return fmt.Errorf("new content of %s: %w", it.target, err)
	}
	defer func() { err = errors.Join(err, body.Close()) }()
	disk := s.g.disk
	f, err := disk.Create(s.at(n))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, disk.Close(f)) }()
	h := sha256.New()
	err = s.g.pour(body, func(data []byte) (int, error) {
		h.Write(data) // never fails
		return len(data), disk.Write(f, data)
	})
	if err != nil {
		return err
	}
	if err := disk.Chmod(f, it.mode); err != nil {
		return err
	}
	it.alter.New = fileVersion(it.mode, h)
	return disk.Sync(f)
}

// settle makes the names in the stage, and its own, durable.
func (s *stage) settle() error {
	if err := s.g.disk.Sync(s.dir); err != nil {
		return err
	}
	return s.g.disk.Sync(s.in)
}

// asidePrefix begins the name of a stage that is being removed.
const asidePrefix = "over."

func isAside(stage string) bool { return strings.HasPrefix(stage, asidePrefix) }

// clearAway removes a stage that its maker left. It goes out of the way at once, so
// that nobody takes what is removed already for done, should its landing be decided
// after all; and only under the name that it was found by, lest it be in use for
// another landing by now.
func (s *stage) clearAway() error {
	aside := asidePrefix + s.name
	if err := s.g.disk.Move(s.in, s.name, s.g.recovs, aside); err != nil {
		return err
	}
	s.in, s.name = s.g.recovs, aside
	return s.discard()
}

// discard removes a stage with all that is in it.
func (s *stage) discard() error {
	return errors.Join(s.collectDraft(), s.g.empty(s.dir), s.g.disk.RemoveDir(s.in, s.name))
}

// drop removes a stage that nothing is left in, or is gone.
func (s *stage) drop() error {
	err := s.g.disk.RemoveDir(s.in, s.name)
	if errors.Is(err, fs.ErrNotExist) || isInUse(err) {
		return nil
	}
	return err
}

// isGone reports whether the stage is not where it was any more: somebody else has
// taken it over.
func (s *stage) isGone() (bool, error) {
	mine, err := s.g.disk.Lstat(s.dir, ".")
	if err != nil {
		return false, err
	}
	there, err := s.g.disk.Lstat(s.in, s.name)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return err == nil && !mine.SameFile(there), err
}

// close gives a stage back, whatever is left of it: whoever has it may close it
// more than once. Others see then that nobody works on it.
func (s *stage) close() {
	if s.draft != nil {
		s.draft.in.Close()
		s.draft = nil
	}
	if s.dir != nil {
		s.dir.Close() // nothing was written through it
	}
}

// empty removes everything in a directory of the gate's own .
func (g *Gate) empty(dir *os.File) error {
	names, err := g.disk.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		err := g.disk.Remove(dir, name)
		if errors.Is(err, unix.EISDIR) {
			var sub *os.File
			if sub, err = g.disk.OpenDir(dir, name); err == nil {
				err = errors.Join(g.empty(sub), g.disk.Close(sub), g.disk.RemoveDir(dir, name))
			}
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// sparePrefix begins the name of an empty stage that its maker uses again, because
// a disk takes longer to make a directory than to rename one.
const sparePrefix = "spare."

func isSpare(stage string) bool { return strings.HasPrefix(stage, sparePrefix) }

// spare keeps an emptied stage of a writer for its next commit. Whoever was late
// with the last one looks for its name, which is gone, and for entries of its own.
// Where that fails, an empty directory is left to the next recovery.
func (s *stage) spare() {
	g := s.g
	name := sparePrefix + newID()
	if g.disk.Move(s.in, s.name, s.in, name) != nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.spares = append(g.spares, &stage{g: g, in: s.in, name: name, dir: s.dir})
	s.dir = nil // it stays open, and locked
}

// takeSpare gives a spare stage a name; nil when there is none.
func (g *Gate) takeSpare(name string) (*stage, error) {
	g.mu.Lock()
	last := len(g.spares) - 1
	if last < 0 {
		g.mu.Unlock()
		return nil, nil
	}
	s := g.spares[last]
	g.spares = g.spares[:last]
	g.mu.Unlock()
	err := g.disk.Move(s.in, s.name, s.in, name)
	if err != nil {
		s.close()
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return nil, err
	}
	s.name, s.commit = name, commitOf(name)
	return s, nil
}

// dropSpares removes the spare stages.
func (g *Gate) dropSpares() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	var errs []error
	for _, s := range g.spares {
		errs = append(errs, s.drop())
		s.close()
	}
	g.spares = nil
	return errors.Join(errs...)
}

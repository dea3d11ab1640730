package gate

import (
	"cmp"
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
	"syscall"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/internal/machine/filelock"
)

// A stage is the directory through which the changes of one landing pass. Its writer made
// it, or a recovery that took over the landing. Entry n holds the new content of change n
// before the change, and the old content after it. Every entry has the commit in its
// name. So a late writer of one commit touches nothing of another commit that uses the
// same directory.
type stage struct {
	g      *Gate
	in     *os.File
	name   string
	commit string
	dir    *os.File

	draft *draft // replaces entry 0 if a directory is replaced
}

// at returns the directory and the name of the entry of change n.
func (s *stage) at(n int) (*os.File, string) {
	if s.draft != nil {
		return s.draft.in, s.draft.name
	}
	return s.dir, s.entry(strconv.Itoa(n))
}

// entry returns the name of an entry in the stage.
func (s *stage) entry(name string) string { return s.commit + "." + name }

// newID returns a random name.
func newID() string {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

func stageName(grantID string, fence uint64, commit string) string {
	return cmp.Or(grantID, "none") + "." + itoa(fence) + "." + commit
}

// makeStage makes a stage with a new name, or reuses a spare one. The stage stays locked while its
// process lives, so that others can recognize an abandoned one. If a recovery removes the stage
// before it is locked, makeStage makes another stage.
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
				Next: "run `lockkeeper init`, then restart the programs that use it"}
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
		ours, err := lockStage(dir, filelock.TryShare)
		if err == nil && ours {
			return s, nil
		}
		s.close()
		if err != nil {
			return nil, err
		}
	}
}

// lockStage locks a stage. It returns false if another process has locked it, or if it was removed.
func lockStage(dir *os.File, lock func(*os.File) (bool, error)) (bool, error) {
	if locked, err := lock(dir); err != nil || !locked {
		return false, err
	}
	info, err := dir.Stat()
	if err != nil {
		return false, err
	}
	return info.Sys().(*syscall.Stat_t).Nlink > 0, nil
}

// openAbandoned opens and locks a stage whose process is gone. It returns nil if a running
// process has the stage, which busy reports, or if the stage is gone.
func (g *Gate) openAbandoned(in *os.File, name string) (s *stage, busy bool, err error) {
	dir, err := g.disk.OpenDir(in, name)
	if err != nil {
		return nil, false, unlessMissing(err)
	}
	s = &stage{g: g, in: in, name: name, commit: commitOf(name), dir: dir}
	abandoned, err := lockStage(dir, filelock.Try)
	if err == nil && abandoned {
		return s, false, nil
	}
	s.close()
	if err != nil {
		return nil, false, err
	}
	_, err = g.disk.Lstat(in, name)
	return nil, err == nil, unlessMissing(err)
}

// fill stages the new content of all items in parallel, because syncing many files at once
// takes little longer than syncing one.
func (s *stage) fill(items []*item) error {
	return inParallel(len(items), func(i int) error {
		if items[i].Delete {
			return nil
		}
		return s.put(i, items[i])
	})
}

// maxParallel bounds how many files are synced at once.
const maxParallel = 16

// inParallel calls the function do for 0 to n-1 and returns the first error.
func inParallel(n int, do func(int) error) error {
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
	for range min(n, maxParallel) {
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

// put writes one file into the stage and syncs it, but not its name. It sets the new
// version of the item.
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
	err = s.g.stream(body, func(data []byte) (int, error) {
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

// syncNames makes the names in the stage and the name of the stage durable.
func (s *stage) syncNames() error {
	if err := s.g.disk.Sync(s.dir); err != nil {
		return err
	}
	return s.g.disk.Sync(s.in)
}

// asidePrefix begins the name of a stage that is being removed.
const asidePrefix = "over."

// removeAbandoned removes a stage whose process is gone. It renames the stage first: if the
// landing is decided after all, a missing entry must not look like a change that was
// made. The rename fails if the stage has a new name because another landing uses it.
func (s *stage) removeAbandoned() error {
	aside := asidePrefix + s.name
	if err := s.g.disk.Move(s.in, s.name, s.g.recovs, aside); err != nil {
		return err
	}
	s.in, s.name = s.g.recovs, aside
	return s.discard()
}

func (s *stage) discard() error {
	return errors.Join(s.collectDraft(), s.g.empty(s.dir), s.g.disk.RemoveDir(s.in, s.name))
}

// drop removes a stage if it is empty.
func (s *stage) drop() error {
	err := s.g.disk.RemoveDir(s.in, s.name)
	if isInUse(err) {
		return nil
	}
	return unlessMissing(err)
}

// isGone reports whether another process has taken over the stage and removed it.
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

// close closes and unlocks a stage. It may be called more than once.
func (s *stage) close() {
	if s.draft != nil {
		s.draft.in.Close()
		s.draft = nil
	}
	if s.dir != nil {
		s.dir.Close() // nothing was written through the descriptor
	}
}

// empty removes the content of one of the gate's directories.
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

// sparePrefix begins the name of an empty stage that its process reuses, because renaming
// a directory is faster than making one.
const sparePrefix = "spare."

func isSpare(stage string) bool { return strings.HasPrefix(stage, sparePrefix) }

// spare keeps an empty stage for the next commit. A late writer of the last commit cannot
// disturb it, because it uses the old name of the stage and its own entries. If the rename
// fails, the next recovery removes the directory.
func (s *stage) spare() {
	g := s.g
	name := sparePrefix + newID()
	if g.disk.Move(s.in, s.name, s.in, name) != nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.spares = append(g.spares, &stage{g: g, in: s.in, name: name, dir: s.dir})
	s.dir = nil // the spare stage stays open and locked
}

// takeSpare returns a spare stage under a new name, or nil if there is none.
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
		return nil, unlessMissing(err)
	}
	s.name, s.commit = name, commitOf(name)
	return s, nil
}

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

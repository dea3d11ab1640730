package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper/internal/machine/boot"
)

// A base that was kept is brought up to date by the next process, as after a landing, which takes a
// scan instead of a copy. It is used only until the machine starts again, because nothing of it is
// written to the disk for certain.

// keptName is the file in a base that describes it. A base without it is not complete.
const keptName = "kept"

// keptFormat must be raised with every change of kept.
const keptFormat = 1

// kept describes the newest state of a base. The manifests of its layers have the rest.
type kept struct {
	Format   int      `json:"format"`
	Boot     string   `json:"boot"`
	Root     string   `json:"root"`
	Without  []string `json:"without"`
	Linked   []string `json:"linked"`
	Sealed   bool     `json:"sealed"`
	Layers   []string `json:"layers"` // the uppermost first
	Outside  []string `json:"outside"`
	Oddities []Oddity `json:"oddities"`
}

// describe returns what a kept base must agree with.
func (b *Base) describe() (kept, error) {
	now, err := boot.ID()
	return kept{Format: keptFormat, Boot: now, Root: b.o.Root, Without: b.o.Without, Linked: b.o.Linked, Sealed: b.o.Sealed}, err
}

// note describes the newest state in the base, so that a later process can use it.
func (b *Base) note() error {
	if !b.o.Keep {
		return nil
	}
	k, err := b.describe()
	if err != nil {
		return err
	}
	k.Layers, k.Outside, k.Oddities = b.now.dirs, b.now.outside, b.now.oddities
	text, err := json.Marshal(k)
	if err != nil {
		return err
	}
	draft := filepath.Join(b.dir, keptName+".new")
	if err := os.WriteFile(draft, text, 0o600); err != nil {
		return err
	}
	return os.Rename(draft, filepath.Join(b.dir, keptName))
}

// adopt looks for a base that an earlier process kept, and locks it.
func (b *Base) adopt() error {
	entries, err := os.ReadDir(b.o.Dir)
	if err != nil || !b.o.Keep {
		return err
	}
	want, err := b.describe()
	if err != nil {
		return err
	}
	for _, e := range entries {
		dir := filepath.Join(b.o.Dir, e.Name())
		if !strings.HasPrefix(e.Name(), baseName) {
			continue
		}
		lock, err := openLocked(dir)
		if err != nil {
			continue // another process uses it
		}
		if b.load(dir, want) == nil {
			b.dir, b.lock = dir, lock
			return nil
		}
		unlock(lock)
		closeFD(lock)
	}
	return nil
}

var errNotKept = errors.New("it is the base of something else, or incomplete")

// load reads the state of a kept base.
func (b *Base) load(dir string, want kept) error {
	text, err := os.ReadFile(filepath.Join(dir, keptName))
	if err != nil {
		return err
	}
	var k kept
	if err := json.Unmarshal(text, &k); err != nil {
		return err
	}
	is := k
	is.Layers, is.Outside, is.Oddities = nil, nil, nil
	if !reflect.DeepEqual(is, want) || len(k.Layers) == 0 {
		return errNotKept
	}
	first := k.Layers[len(k.Layers)-1:]
	copied, err := loadSnapshot(first)
	if err != nil {
		return err
	}
	now, err := loadSnapshot(k.Layers)
	if err != nil {
		return err
	}
	for _, s := range []*snapshot{copied, now} {
		s.outside, s.oddities = k.Outside, k.Oddities
	}
	users, err := usersOf(b.o.Dir, dir)
	if err != nil {
		return err
	}
	b.copied, b.now, b.users = copied, now, users
	copied.nodes.each(".", func(string, *node) { b.names++ })
	return b.removeUnused(dir)
}

// loadSnapshot returns the state that a stack of layers has. What changed in repositories is not
// known, so they are copied again.
func loadSnapshot(dirs []string) (*snapshot, error) {
	s := &snapshot{dirs: dirs, shared: map[string]sharedRepository{}, repositories: map[string]bool{}, recorded: map[string]bool{}, refused: map[string]stamp{}}
	var err error
	if s.nodes, err = loadLayers(dirs); err != nil {
		return nil, err
	}
	for i, dir := range dirs {
		m, err := readManifestOf(homeOfLayer(dir))
		if err != nil {
			return nil, err
		}
		if i == 0 {
			s.seq, s.commit = m.Seq, m.Commit
			for _, path := range m.Repositories {
				s.repositories[path], s.shared[path] = true, sharedRepository{}
			}
		}
		if i < len(dirs)-1 {
			for _, l := range m.lines {
				s.recorded[l.Path] = true
			}
		}
	}
	return s, nil
}

// usersOf counts the workspaces in a directory that are on the layers of a base. They are of other
// processes, so this one removes none of these layers.
func usersOf(dir, base string) (map[string]int, error) {
	users := map[string]int{}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if !ownName.MatchString(e.Name()) {
			continue
		}
		m, err := readManifestOf(filepath.Join(dir, e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // it is incomplete, or is being removed
		}
		if err != nil {
			return nil, err
		}
		for _, layer := range m.Layers {
			if strings.HasPrefix(layer, base+"/") {
				users[layer]++
			}
		}
	}
	return users, err
}

// removeUnused removes layers that neither the newest state nor a workspace needs: folded ones, and
// one whose process died while it made it.
func (b *Base) removeUnused(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		n, bad := strconv.Atoi(e.Name())
		if bad != nil {
			continue
		}
		b.last = max(b.last, n)
		home := filepath.Join(dir, e.Name())
		is := func(layer string) bool { return homeOfLayer(layer) == home }
		used := slices.ContainsFunc(b.now.dirs, is)
		for layer := range b.users {
			used = used || is(layer)
		}
		if !used {
			if err := Remove(context.Background(), home); err != nil {
				return err
			}
		}
	}
	return err
}

// homeOfLayer returns the directory in which a layer has its manifest.
func homeOfLayer(layer string) string {
	if filepath.Base(layer) == upperName {
		return filepath.Dir(layer)
	}
	return layer
}

// Kept returns the base that a directory of workspaces keeps, and when it was made. It returns "" if
// there is none.
func Kept(dir string) (base string, made time.Time, err error) {
	found, err := filepath.Glob(filepath.Join(dir, baseName+"*", keptName))
	if err != nil || len(found) == 0 {
		return "", made, err
	}
	base = filepath.Dir(found[0])
	info, err := os.Stat(filepath.Join(base, "0"))
	if err != nil {
		return "", made, nil // it is being removed
	}
	return base, info.ModTime(), nil
}

// mayKeep reports whether the base may stay for the next process: its directory keeps one base, and
// the disk has room for as much again.
func (b *Base) mayKeep() (bool, error) {
	if !b.o.Keep || b.now == nil {
		return false, nil
	}
	others, err := filepath.Glob(filepath.Join(b.o.Dir, baseName+"*"))
	if err != nil || len(others) > 1 {
		return false, err
	}
	var room unix.Statfs_t
	if err := unix.Statfs(b.dir, &room); err != nil {
		return false, err
	}
	var size int64
	b.now.nodes.each(".", func(_ string, n *node) {
		if n.Mode.IsRegular() {
			size += n.Size
		}
	})
	return int64(room.Bavail)*room.Bsize >= size, nil
}

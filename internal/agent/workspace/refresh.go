package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"lockkeeper"
)

// A Conflict is a path that both the agent and the shared tree changed. The agent's version
// stays in the workspace.
type Conflict struct {
	Change Change // the agent's change
	Shared *State // state of the path in the shared tree; nil if the path does not exist there
}

// Refresh updates paths, and everything below them, to the current state of the shared tree.
// Changes of the agent stay. If both changed a path differently, the path stays as well and
// is returned as a conflict.
//
// moved are the paths at which the shared tree differs from what was copied, whatever the
// agent has there. Earlier results about them may be stale. A directory is listed only if its
// permissions differ, or if it was created or removed empty.
//
// If Refresh fails, it returns what it found so far. No agent may run meanwhile.
func (w *Workspace) Refresh(ctx context.Context, paths []string) (moved []string, conflicts []Conflict, err error) {
	return w.update(ctx, func(b *refresher) error { return b.bring(paths) })
}

// CatchUp refreshes all paths that landed after Seq, and sets Seq to the last landing.
func (w *Workspace) CatchUp(ctx context.Context) (moved []string, conflicts []Conflict, err error) {
	return w.update(ctx, (*refresher).catchUp)
}

func (w *Workspace) update(ctx context.Context, do func(*refresher) error) (moved []string, conflicts []Conflict, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.begin(); err != nil {
		return nil, nil, err
	}
	from, err := openOrigin(w.root, w.sums)
	if err != nil {
		return nil, nil, err
	}
	defer from.close()
	b := newRefresher(ctx, w, from)
	err = errors.Join(do(b), w.save())
	conflicts = slices.SortedFunc(maps.Values(b.conflicts), func(c, d Conflict) int { return strings.Compare(c.Change.Path, d.Change.Path) })
	return b.moved.list(), conflicts, err
}

// moves are paths at which the shared tree differs from what was copied. The value is true
// for a directory that was created or removed, which is listed only if it is empty.
type moves map[string]bool

func (m moves) add(p string, isFolder bool) {
	if _, known := m[p]; !known || !isFolder {
		m[p] = isFolder
	}
}

func (m moves) list() (paths []string) {
	told := map[string]bool{}
	for p := range m {
		for p != "." {
			p = path.Dir(p)
			told[p] = true
		}
	}
	for p, isFolder := range m {
		if !isFolder || !told[p] {
			paths = append(paths, p)
		}
	}
	slices.Sort(paths)
	return paths
}

// A refresher compares paths of the shared tree with the copied state, and copies the paths that
// differ.
type refresher struct {
	w         *Workspace
	h         *worker
	from      *origin
	moved     moves
	conflicts map[string]Conflict // conflicts found so far, by path

	// These fields are the state of one pass.
	complete map[string]bool // paths that are complete
	turned   area            // paths whose type changed meanwhile
}

func newRefresher(ctx context.Context, w *Workspace, from *origin) *refresher {
	return &refresher{w: w, h: newWorker(ctx), from: from, moved: moves{}, conflicts: map[string]Conflict{}}
}

// maxRounds bounds how often new landings may make a copy start again.
const maxRounds = 100

func (b *refresher) catchUp() error {
	w := b.w
	if w.landed == nil {
		return nil
	}
	paths, last, err := w.landed(b.h.ctx, w.seq)
	for range maxRounds {
		if err != nil {
			return fmt.Errorf("list landings after %d: %w", w.seq, err)
		}
		if err := b.bring(paths); err != nil {
			return err
		}
		w.seq = max(w.seq, last)
		// Only paths of the last round can have been read during a new landing.
		brought := paths
		if paths, last, err = w.landed(b.h.ctx, w.seq); err == nil && !overlap(brought, paths) {
			return nil
		}
	}
	return &lockkeeper.RefusedError{Act: "bringing workspace " + w.dir + " up to date",
		Reason: fmt.Sprintf("new landings changed the same paths in each of %d rounds, last landing %d", maxRounds, w.seq), Next: "try again later"}
}

func overlap(some, others []string) bool {
	return slices.ContainsFunc(some, areaOf(others).has) || slices.ContainsFunc(others, areaOf(some).has)
}

// bring refreshes paths and everything below them. It repeats this for paths whose type changes
// meanwhile.
func (b *refresher) bring(paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	if err := b.w.enterView(b.h.ctx); err != nil {
		return err
	}
	for range copyTries {
		b.complete, b.turned = map[string]bool{}, area{}
		if err := b.pass(paths); err != nil {
			return err
		}
		if paths = slices.Collect(maps.Keys(b.turned)); len(paths) == 0 {
			break
		}
	}
	for _, p := range paths {
		b.from.report(p, fmt.Sprintf("it became something else while it was copied, %d times", copyTries))
	}
	b.w.noteOddities(b.from)
	return nil
}

func (b *refresher) pass(paths []string) error {
	all := map[string]bool{}
	for _, p := range paths {
		p, err := clean(p)
		if err == nil {
			err = b.collect(p, all)
		}
		if err != nil {
			return err
		}
	}
	// Removed paths are handled first, innermost first; then existing ones, outermost
	// first.
	order := slices.SortedFunc(maps.Keys(all), func(p, q string) int {
		return cmp.Or(cmp.Compare(depth(p), depth(q)), strings.Compare(p, q))
	})
	for _, p := range slices.Backward(order) {
		delete(b.conflicts, p) // the pass finds the conflict again if it still exists
		if err := b.clear(p); err != nil {
			return err
		}
	}
	for _, p := range order {
		if b.h.ctx.Err() != nil {
			return context.Cause(b.h.ctx)
		}
		if err := b.put(p); err != nil {
			return err
		}
	}
	return nil
}

// collect adds a path, its parents, and everything that is or was below it.
func (b *refresher) collect(p string, all map[string]bool) error {
	for at := p; at != "."; at = path.Dir(at) {
		if b.isPassedOver(split(at)) {
			return nil
		}
	}
	for at := p; at != "."; at = path.Dir(at) {
		all[at] = true
	}
	if was := b.w.base.find(p); was != nil {
		was.each(p, func(at string, n *node) {
			if !b.w.isLinked(at, n) {
				all[at] = true
			}
		})
	}
	return b.collectShared(p, all)
}

func (b *refresher) collectShared(p string, all map[string]bool) error {
	dir, err := openFolder(b.from.fd, p, true)
	switch {
	case isGone(err), isClosed(err): // the path is gone, or is not a directory
		return nil
	case err != nil:
		return pathError("open", p, err)
	}
	defer closeFD(dir)
	err = eachName(dir, func(names []string) error {
		for _, name := range names {
			if name == gitName && isRepository(dir) || b.isPassedOver(p, name) {
				continue
			}
			at := below(p, name)
			all[at] = true
			if err := b.collectShared(at, all); err != nil {
				return err
			}
		}
		return nil
	})
	if isGone(err) {
		return nil
	}
	return pathError("list", p, err)
}

// isPassedOver reports whether a name is not refreshed.
func (b *refresher) isPassedOver(dir, name string) bool {
	at := below(dir, name)
	return b.w.isLeftOut(dir, name) || b.w.isLinked(at, b.w.base.find(at))
}

// isLinked reports whether a path is a linked folder, which is always current.
func (w *Workspace) isLinked(p string, n *node) bool { return isLinked(w.root, p, n) }

func isLinked(root, p string, n *node) bool {
	return n != nil && n.Link != "" && n.Link == path.Join(root, p)
}

// shared returns the stat of a path of the shared tree, and false if it cannot be copied.
func (b *refresher) shared(p string) (seen fileStat, ok bool, err error) {
	err = b.from.at(p, func(dir int, name string) (err error) {
		seen, err = statAt(dir, name)
		return err
	})
	switch {
	case isGone(err), isClosed(err):
		return seen, false, nil
	case err != nil:
		return seen, false, pathError("stat", p, err)
	}
	t := seen.mode.Type()
	return seen, t == 0 || t == fs.ModeDir || t == fs.ModeSymlink, nil
}

func (b *refresher) conflict(p string, kind Kind, was *node, now *State) error {
	b.complete[p] = true
	c := Conflict{Change: newChange(p, kind, was, now)}
	err := b.from.at(p, func(dir int, name string) error {
		seen, err := statAt(dir, name)
		if err == nil {
			c.Shared, err = stateAt(dir, name, seen)
		}
		return err
	})
	if err != nil && !isGone(err) && !isClosed(err) {
		return pathError("stat", p, err)
	}
	b.conflicts[p] = c
	return nil
}

// clear removes a path that the shared tree no longer has, or has as another type.
func (b *refresher) clear(p string) error {
	was := b.w.base.find(p)
	if was == nil {
		return nil
	}
	seen, ok, err := b.shared(p)
	if err != nil || ok && seen.mode.Type() == was.Mode.Type() {
		return err
	}
	b.moved.add(p, was.isFolder() && !ok)
	kind, now, err := b.w.inspect(b.h, p, was)
	switch {
	case err != nil:
		return err
	case kind == Deleted && !ok:
		b.w.record(p, nil)
		return nil
	case kind != unchanged:
		return b.conflict(p, kind, was, now)
	case len(was.children) > 0: // some children are in conflict
		b.complete[p] = true
		return nil
	}
	flags := 0
	if was.isFolder() {
		flags = unix.AT_REMOVEDIR
	}
	err = b.w.at(p, func(dir int, name string) error { return unix.Unlinkat(dir, name, flags) })
	if err != nil && !isInUse(err) { // the agent's own files in a directory stay
		return pathError("remove", p, err)
	}
	b.w.record(p, nil)
	return nil
}

//go:build unix

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

// Conflict is a path that both the agent and somebody else changed. It was left as
// the agent has it.
type Conflict struct {
	Change Change // what the agent did
	Shared *State // what the shared tree holds now; nil: nothing
}

// Refresh brings paths, and all that is below them, to what the shared tree holds
// now, be it a file, a directory or nothing. What the agent changed and others did
// not stays as it is; what both changed is returned, by path, and stays as well,
// unless both made the same of it.
//
// Moved are the paths at which the shared tree is not what was copied, whoever
// changed it and whatever the agent has there: what was found out before about the
// copy may not hold there any more. A directory is one of them only if its
// permissions differ, or if it came or went with nothing in it.
//
// When it fails, what was found until then is returned with the error. No agent
// should be at work meanwhile.
func (w *Workspace) Refresh(ctx context.Context, paths []string) (moved []string, conflicts []Conflict, err error) {
	return w.update(ctx, func(b *bringing) error { return b.bring(paths) })
}

// CatchUp refreshes all that was landed after Seq, which is then the last landing.
func (w *Workspace) CatchUp(ctx context.Context) (moved []string, conflicts []Conflict, err error) {
	return w.update(ctx, (*bringing).catchUp)
}

func (w *Workspace) update(ctx context.Context, do func(*bringing) error) (moved []string, conflicts []Conflict, err error) {
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
	b := newBringing(ctx, w, from)
	err = errors.Join(do(b), w.save())
	conflicts = slices.SortedFunc(maps.Values(b.conflicts), func(c, d Conflict) int { return strings.Compare(c.Change.Path, d.Change.Path) })
	return b.moved.list(), conflicts, err
}

// moves are paths at which the shared tree is not what was copied. True: a directory
// that came or went, which is told by what is in it, if anything is.
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

// bringing compares paths of the shared tree with what was copied, and brings what
// is new there.
type bringing struct {
	w         *Workspace
	h         *hand
	from      *origin
	moved     moves
	conflicts map[string]Conflict // by path

	// of one pass
	settled map[string]bool // paths about which nothing more is to be done
	turned  area            // paths that became something else meanwhile
}

func newBringing(ctx context.Context, w *Workspace, from *origin) *bringing {
	return &bringing{w: w, h: newHand(ctx), from: from, moved: moves{}, conflicts: map[string]Conflict{}}
}

// maxRounds is how often landings may come in between before a copy is given up.
const maxRounds = 100

func (b *bringing) catchUp() error {
	w := b.w
	if w.landed == nil {
		return nil
	}
	paths, last, err := w.landed(b.h.ctx, w.seq)
	for range maxRounds {
		if err != nil {
			return fmt.Errorf("ask what was landed after %d: %w", w.seq, err)
		}
		if err := b.bring(paths); err != nil {
			return err
		}
		w.seq = max(w.seq, last)
		// What was landed since can have been seen in part only where it was just
		// looked.
		brought := paths
		if paths, last, err = w.landed(b.h.ctx, w.seq); err == nil && !overlap(brought, paths) {
			return nil
		}
	}
	return &lockkeeper.RefusedError{Act: "bringing workspace " + w.dir + " up to date",
		Reason: fmt.Sprintf("the same paths were landed on in each of %d rounds, last in landing %d", maxRounds, w.seq), Next: "try again when less is landed"}
}

func overlap(some, others []string) bool {
	return slices.ContainsFunc(some, areaOf(others).has) || slices.ContainsFunc(others, areaOf(some).has)
}

// bring brings paths and all that is below them, and once more what turns from a
// file into a directory, or back, meanwhile.
func (b *bringing) bring(paths []string) error {
	for range copyTries {
		b.settled, b.turned = map[string]bool{}, area{}
		if err := b.pass(paths); err != nil {
			return err
		}
		if paths = slices.Collect(maps.Keys(b.turned)); len(paths) == 0 {
			break
		}
	}
	for _, p := range paths {
		b.from.report(p, Torn, fmt.Sprintf("it became something else while it was copied, %d times", copyTries))
	}
	b.w.oddities = withOddities(b.w.oddities, b.from)
	return nil
}

func (b *bringing) pass(paths []string) error {
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
	// What is gone goes first, innermost first; then what is there comes, outermost
	// first.
	order := slices.SortedFunc(maps.Keys(all), func(p, q string) int {
		return cmp.Or(cmp.Compare(depth(p), depth(q)), strings.Compare(p, q))
	})
	for _, p := range slices.Backward(order) {
		delete(b.conflicts, p) // it will be found again, or is none any more
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

// collect names a path, what is above it and all that is, or was, below it.
func (b *bringing) collect(p string, all map[string]bool) error {
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

func (b *bringing) collectShared(p string, all map[string]bool) error {
	dir, err := openFolder(b.from.fd, p, true)
	switch {
	case isGone(err), isClosed(err): // or no directory
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

// isPassedOver reports whether a name is not brought, with all that is below it.
func (b *bringing) isPassedOver(dir, name string) bool {
	at := below(dir, name)
	return b.w.isLeftOut(dir, name) || b.w.isLinked(at, b.w.base.find(at))
}

// isLinked reports whether what was copied at a path is a link in the place of a
// folder: what it holds is always as the shared tree has it.
func (w *Workspace) isLinked(p string, n *node) bool {
	return n != nil && n.Link != "" && n.Link == path.Join(w.root, p)
}

// shared looks at a path of the shared tree; not ok: there is nothing that could
// be copied.
func (b *bringing) shared(p string) (seen look, ok bool, err error) {
	dirPath, name := split(p)
	dir, err := openFolder(b.from.fd, dirPath, true)
	if err == nil {
		seen, err = lookAt(dir, name)
		closeFD(dir)
	}
	switch {
	case isGone(err), isClosed(err):
		return seen, false, nil
	case err != nil:
		return seen, false, pathError("stat", p, err)
	}
	t := seen.mode.Type()
	return seen, t == 0 || t == fs.ModeDir || t == fs.ModeSymlink, nil
}

func (b *bringing) conflict(p string, kind Kind, was *node, now *State) error {
	b.settled[p] = true
	c := Conflict{Change: newChange(p, kind, was, now)}
	dirPath, name := split(p)
	dir, err := openFolder(b.from.fd, dirPath, true)
	if err == nil {
		defer closeFD(dir)
		var seen look
		if seen, err = lookAt(dir, name); err == nil {
			c.Shared, err = stateAt(dir, name, seen)
		}
	}
	if err != nil && !isGone(err) && !isClosed(err) {
		return pathError("stat", p, err)
	}
	b.conflicts[p] = c
	return nil
}

// clear removes what the shared tree has no more, or has as something else.
func (b *bringing) clear(p string) error {
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
		b.w.base.set(p, nil)
		return nil
	case kind != unchanged:
		return b.conflict(p, kind, was, now)
	case len(was.children) > 0: // some of which are in conflict
		b.settled[p] = true
		return nil
	}
	flags := 0
	if was.isFolder() {
		flags = unix.AT_REMOVEDIR
	}
	err = b.w.inFolder(path.Dir(p), func(dir int) error { return unix.Unlinkat(dir, path.Base(p), flags) })
	if err != nil && !isInUse(err) { // what the agent has of its own in a directory stays
		return pathError("remove", p, err)
	}
	b.w.base.set(p, nil)
	return nil
}

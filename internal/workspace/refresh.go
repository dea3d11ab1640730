//go:build unix

package workspace

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/durable"
)

// Conflict is a path that both the agent and somebody else changed. It was left as
// the agent has it.
type Conflict struct {
	Change Change // what the agent did
	Shared *State // what the shared tree holds now; nil: nothing
}

// Refresh brings paths, and all that is below them, to what the shared tree holds
// now. What the agent changed and others did not stays as it is; what both changed
// is returned, by path, and stays as well, unless both made the same of it. No
// agent should be at work meanwhile.
func (w *Workspace) Refresh(ctx context.Context, paths []string) (conflicts []Conflict, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.begin(); err != nil {
		return nil, err
	}
	from, err := openOrigin(w.root, w.sums)
	if err != nil {
		return nil, err
	}
	defer from.close()
	if conflicts, err = w.bring(ctx, from, paths); err != nil {
		return conflicts, err
	}
	return conflicts, w.save()
}

// CatchUp refreshes all that was landed after Seq, which is then the last landing.
func (w *Workspace) CatchUp(ctx context.Context) (conflicts []Conflict, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.begin(); err != nil {
		return nil, err
	}
	from, err := openOrigin(w.root, w.sums)
	if err != nil {
		return nil, err
	}
	defer from.close()
	if conflicts, err = w.catchUp(ctx, from); err != nil {
		return conflicts, err
	}
	return conflicts, w.save()
}

// maxRounds is how often landings may come in between before a copy is given up.
const maxRounds = 100

func (w *Workspace) catchUp(ctx context.Context, from *origin) ([]Conflict, error) {
	if w.landed == nil {
		return nil, nil
	}
	found := map[string]Conflict{}
	paths, last, err := w.landed(ctx, w.seq)
	for range maxRounds {
		if err != nil {
			return nil, fmt.Errorf("ask what was landed after %d: %w", w.seq, err)
		}
		conflicts, err := w.bring(ctx, from, paths)
		if err != nil {
			return nil, err
		}
		for _, c := range conflicts {
			found[c.Change.Path] = c
		}
		w.seq = max(w.seq, last)
		// What was landed since can have been seen in part only where it was just
		// looked.
		brought := paths
		if paths, last, err = w.landed(ctx, w.seq); err == nil && !overlap(brought, paths) {
			return slices.SortedFunc(maps.Values(found), byPath), nil
		}
	}
	return nil, &lockkeeper.RefusedError{Act: "bringing workspace " + w.dir + " up to date",
		Reason: fmt.Sprintf("the same paths were landed on in each of %d rounds, last in landing %d", maxRounds, w.seq), Next: "try again when less is landed"}
}

func overlap(some, others []string) bool {
	return slices.ContainsFunc(some, func(p string) bool {
		return slices.ContainsFunc(others, func(q string) bool { return isWithin(p, q) || isWithin(q, p) })
	})
}

func byPath(a, b Conflict) int { return strings.Compare(a.Change.Path, b.Change.Path) }

// bringing is one pass over paths that may have changed in the shared tree.
type bringing struct {
	w         *Workspace
	h         *hand
	from      *origin
	conflicts []Conflict
	settled   map[string]bool // paths about which nothing more is to be done
}

func (w *Workspace) bring(ctx context.Context, from *origin, paths []string) ([]Conflict, error) {
	b := &bringing{w: w, h: newHand(ctx), from: from, settled: map[string]bool{}}
	all := map[string]bool{}
	for _, p := range paths {
		p, err := clean(p)
		if err == nil {
			err = b.collect(p, all)
		}
		if err != nil {
			return nil, err
		}
	}
	// What is gone goes first, innermost first; then what is there comes, outermost
	// first.
	order := slices.SortedFunc(maps.Keys(all), func(p, q string) int {
		return cmp.Or(cmp.Compare(depth(p), depth(q)), strings.Compare(p, q))
	})
	for _, p := range slices.Backward(order) {
		if err := b.clear(p); err != nil {
			return nil, err
		}
	}
	for _, p := range order {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err := b.put(p); err != nil {
			return nil, err
		}
	}
	w.oddities = withOddities(w.oddities, from)
	slices.SortFunc(b.conflicts, byPath)
	return b.conflicts, nil
}

// collect names a path, what is above it and all that is, or was, below it.
func (b *bringing) collect(p string, all map[string]bool) error {
	if b.w.isLinked(p) {
		return nil
	}
	for at := p; at != "."; at = path.Dir(at) {
		all[at] = true
	}
	if was := b.w.base.find(p); was != nil {
		was.each(p, func(at string, _ *node) {
			if !b.w.isLinked(at) {
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
			at := below(p, name)
			if name == gitName && isRepository(dir) || p == "." && isReserved(name) || strings.HasPrefix(name, durable.TempPrefix) || b.w.isLinked(at) {
				continue
			}
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

// isLinked reports whether a path is, or lies in, a folder that is linked: it is
// always as the shared tree has it.
func (w *Workspace) isLinked(p string) bool {
	for ; p != "."; p = path.Dir(p) {
		if n := w.base.find(p); n != nil && n.Mode.Type() == fs.ModeSymlink && n.Link == path.Join(w.root, p) {
			return true
		}
	}
	return false
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
	b.conflicts = append(b.conflicts, c)
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

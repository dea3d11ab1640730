//go:build unix

package workspace

import (
	"context"
	"errors"
	"path"

	"golang.org/x/sys/unix"
)

// Survey is Changes for a workspace that may hold very many: a directory that was not
// copied and has more than a hundred names below it, or one with a path that is too long
// to name, is one change with the number of its files, unless a wanted path lies below it.
func (w *Workspace) Survey(ctx context.Context, wanted []string) ([]Change, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.begin(); err != nil {
		return nil, err
	}
	return w.changes(ctx, foldersAbove(wanted))
}

// foldersAbove are all directories in which one of the paths is.
func foldersAbove(paths []string) map[string]bool {
	above := map[string]bool{}
	for _, p := range paths {
		for p != "." && !above[path.Dir(p)] {
			p = path.Dir(p)
			above[p] = true
		}
	}
	return above
}

// maxListed is how many names a new directory may have that Survey lists one by one.
const maxListed = 100

// maxDepth bounds how deep a heap is looked into: each level takes a descriptor.
const maxDepth = 200

// heap is what is known of a directory without listing it.
type heap struct {
	names   int
	files   int  // names that are no directories
	unnamed bool // something in it has a path that is too long
}

func (p heap) isLarge() bool { return p.names > maxListed || p.unnamed }

// measure counts what is below an open directory whose path has so many bytes.
func (p *heap) measure(h *hand, dir, length, depth int) error {
	return eachName(dir, func(names []string) error {
		for _, name := range names {
			if h.ctx.Err() != nil {
				return context.Cause(h.ctx)
			}
			p.names++
			at := length + 1 + len(name)
			p.unnamed = p.unnamed || at > maxPath
			err := inside(dir, name, func(sub int) error {
				if depth == maxDepth {
					p.unnamed = true
					return nil
				}
				return p.measure(h, sub, at, depth+1)
			})
			switch {
			case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
				p.files++
			case err != nil && !isGone(err):
				return err
			}
		}
		return nil
	})
}

// inside lends an open directory of the workspace by its name in another one. One that
// its owner may not enter is opened up.
func inside(dir int, name string, do func(sub int) error) error {
	sub, err := openFolder(dir, name, false)
	if errors.Is(err, unix.EACCES) {
		if err = chmodAt(dir, name, 0o700); err == nil {
			sub, err = openFolder(dir, name, false)
		}
	}
	if err != nil {
		return err
	}
	defer closeFD(sub)
	if err := openFully(sub); err != nil {
		return err
	}
	return do(sub)
}

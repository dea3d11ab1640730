package parcel

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A Keeper makes commits of directories that change a little between two commits. It reads only files
// whose size or times changed.
type Keeper struct {
	repo         *Repo
	seen         map[string]keptFile // by absolute path
	tree, commit string              // the last ones
}

type keptFile struct {
	size    int64
	changed time.Time
	id      string
}

// NewKeeper returns a keeper that has read nothing.
func (r *Repo) NewKeeper() *Keeper { return &Keeper{repo: r, seen: map[string]keptFile{}} }

// A Kept directory is in a commit under a name.
type Kept struct {
	Name string
	Dir  string                // absolute; a missing directory is empty
	Skip func(rel string) bool // files to leave out; nil: none
}

// settled is how old a change must be before its file counts as unchanged: two changes within the
// resolution of the disk's clock look like one.
const settled = 2 * time.Second

// Keep makes a commit of regular files, byte for byte, in the order of the directories. A file that
// disappears meanwhile is left out. If nothing changed, Keep returns the last commit.
func (k *Keeper) Keep(ctx context.Context, dirs []Kept, files map[string][]byte, subject string) (commit string, err error) {
	seen := map[string]keptFile{}
	var index strings.Builder
	var names, paths []string // of files to read
	add := func(name, id string) { fmt.Fprintf(&index, "100644 %s\t%s\x00", id, name) }
	for name, text := range files {
		id, err := k.repo.git.Output(ctx, string(text), "hash-object", "-w", "--stdin", "--no-filters")
		if err != nil {
			return "", err
		}
		add(name, strings.TrimSpace(id))
	}
	began := time.Now()
	flush := func() error { // what was written before a later directory is read is in the commit
		if len(paths) == 0 {
			return nil
		}
		ids, err := k.hash(ctx, paths)
		if err != nil {
			return err
		}
		for i, id := range ids {
			if id == "" {
				continue
			}
			add(names[i], id)
			if kept := seen[paths[i]]; began.Sub(kept.changed) > settled {
				kept.id = id
				seen[paths[i]] = kept
			} else {
				delete(seen, paths[i])
			}
		}
		names, paths = nil, nil
		return nil
	}
	for _, d := range dirs {
		err := filepath.WalkDir(d.Dir, func(path string, e fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) || err == nil && !e.Type().IsRegular() {
				return nil
			}
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(d.Dir, path)
			if err != nil || d.Skip != nil && d.Skip(rel) || strings.ContainsAny(rel, "\n") {
				return err
			}
			name := d.Name + "/" + filepath.ToSlash(rel)
			info, err := e.Info()
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			was, now := k.seen[path], keptFile{size: info.Size(), changed: info.ModTime()}
			if was.id != "" && was.size == now.size && was.changed.Equal(now.changed) {
				seen[path] = was
				add(name, was.id)
				return nil
			}
			seen[path] = now
			names, paths = append(names, name), append(paths, path)
			return nil
		})
		if err == nil {
			err = flush()
		}
		if err != nil {
			return "", err
		}
	}
	var tree string
	err = k.repo.scratch(func(at string) error {
		g := k.repo.with(at)
		if _, err := g.Output(ctx, index.String(), "update-index", "-z", "--add", "--index-info"); err != nil {
			return err
		}
		tree, err = g.Line(ctx, "write-tree")
		return err
	})
	if err != nil {
		return "", err
	}
	if k.seen = seen; tree == k.tree {
		return k.commit, nil
	}
	if k.commit, err = k.repo.git.Line(ctx, "commit-tree", tree, "-m", subject); err == nil {
		k.tree = tree
	}
	return k.commit, err
}

// hash stores files and returns their ids. The id of a file that is gone is empty.
func (k *Keeper) hash(ctx context.Context, paths []string) ([]string, error) {
	out, err := k.repo.git.Output(ctx, strings.Join(paths, "\n")+"\n", "hash-object", "-w", "--no-filters", "--stdin-paths")
	if ids := strings.Fields(out); err == nil && len(ids) == len(paths) {
		return ids, nil
	}
	if ctx.Err() != nil {
		return nil, err
	}
	ids := make([]string, len(paths)) // one of them is gone: one by one
	for i, path := range paths {
		f, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var id strings.Builder
		err = k.repo.git.Run(ctx, f, &id, "hash-object", "-w", "--no-filters", "--stdin")
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		ids[i] = strings.TrimSpace(id.String())
	}
	return ids, nil
}

// Extract writes the files of a commit below a directory, which it makes. Names that lead out of the
// directory are refused.
func (r *Repo) Extract(ctx context.Context, commit, dir string) (err error) {
	list, err := r.git.Output(ctx, "", "ls-tree", "-r", "-z", commit)
	if err != nil {
		return err
	}
	var names []string
	var ids strings.Builder
	for line := range strings.SplitSeq(strings.TrimSuffix(list, "\x00"), "\x00") {
		entry, name, _ := strings.Cut(line, "\t")
		f := strings.Fields(entry) // mode, type and id
		if len(f) != 3 || f[0] != ModeFile {
			return fmt.Errorf("%s has an entry %q", commit, line)
		}
		if err := Check(filepath.FromSlash(name)); err != nil {
			return err
		}
		names = append(names, name)
		ids.WriteString(f[2] + "\n")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	out, in := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := writeBlobs(root, bufio.NewReaderSize(out, 1<<16), names)
		out.CloseWithError(err)
		written <- err
	}()
	err = r.git.Run(ctx, strings.NewReader(ids.String()), in, "cat-file", "--batch")
	in.CloseWithError(err)
	return errors.Join(<-written, err)
}

// writeBlobs writes the output of git cat-file --batch to files with these names.
func writeBlobs(root *os.Root, from *bufio.Reader, names []string) error {
	made := map[string]bool{}
	for _, name := range names {
		head, err := from.ReadString('\n')
		if err != nil {
			return err
		}
		f := strings.Fields(head) // id, type and size
		if len(f) != 3 {
			return fmt.Errorf("git cat-file says %q", head)
		}
		size, err := strconv.ParseInt(f[2], 10, 64)
		if err != nil {
			return err
		}
		path := filepath.FromSlash(name)
		if dir := filepath.Dir(path); !made[dir] {
			if err := root.MkdirAll(dir, 0o700); err != nil {
				return err
			}
			made[dir] = true
		}
		file, err := root.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		_, err = io.CopyN(file, from, size)
		if err = errors.Join(err, file.Close()); err != nil {
			return err
		}
		if _, err := from.Discard(1); err != nil { // a line end follows the content
			return err
		}
	}
	return nil
}

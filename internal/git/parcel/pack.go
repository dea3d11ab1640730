package parcel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"lockkeeper/internal/project/protect"
)

// Snapshot returns the tree of the root as it is now, with uncommitted and new files, without files
// that git ignores, and without the given paths. Only files that changed since the person's index
// was written are read.
func (r *Repo) Snapshot(ctx context.Context, without []string) (tree string, err error) {
	err = r.scratch(func(index string) error {
		if err := copyFile(filepath.Join(r.dir, "index"), index); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		g := r.with(index)
		if _, err := g.Line(ctx, "add", "--all", "--", "."); err != nil {
			return err
		}
		if len(without) > 0 {
			args := []string{"rm", "-r", "--quiet", "--cached", "--ignore-unmatch", "--"}
			for _, path := range without {
				args = append(args, ":(top,literal)"+r.prefix+path)
			}
			if _, err := g.Line(ctx, args...); err != nil {
				return err
			}
		}
		args := []string{"write-tree"}
		if r.prefix != "" {
			args = append(args, "--prefix="+r.prefix)
		}
		tree, err = g.Line(ctx, args...)
		return err
	})
	return tree, err
}

func copyFile(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o600)
}

// An Edit is one changed file, byte for byte.
type Edit struct {
	Path string
	Exec bool
	Open func() (io.ReadCloser, error) // nil: the file is deleted
}

// A Parcel is what Pack makes a commit of.
type Parcel struct {
	Base    string // the id of the tree that the parcel is based on
	From    string // the tree to which the edits are made; empty: Base
	Edits   []Edit
	Files   map[string][]byte
	Parents []string
	Subject string
}

// Pack makes the commit of a parcel.
func (r *Repo) Pack(ctx context.Context, p Parcel) (commit string, err error) {
	tree, err := r.edited(ctx, p)
	if err != nil {
		return "", err
	}
	entries := fmt.Sprintf("040000 tree %s\tbase\x00040000 tree %s\ttree\x00", p.Base, tree)
	for name, text := range p.Files {
		id, err := r.git.Output(ctx, string(text), "hash-object", "-w", "--stdin", "--no-filters")
		if err != nil {
			return "", err
		}
		entries += fmt.Sprintf("100644 blob %s\t%s\x00", strings.TrimSpace(id), name)
	}
	top, err := r.git.Output(ctx, entries, "mktree", "-z")
	if err != nil {
		return "", err
	}
	args := []string{"commit-tree", strings.TrimSpace(top), "-m", p.Subject}
	for _, parent := range p.Parents {
		args = append(args, "-p", parent)
	}
	return r.git.Line(ctx, args...)
}

// edited returns the tree with the edits.
func (r *Repo) edited(ctx context.Context, p Parcel) (tree string, err error) {
	from := p.From
	if from == "" {
		from = p.Base
	}
	if len(p.Edits) == 0 {
		return from, nil
	}
	// Deleted files come first, because a new directory can have the name of one.
	edits := slices.Clone(p.Edits)
	slices.SortStableFunc(edits, func(a, b Edit) int {
		switch {
		case a.Open == nil && b.Open != nil:
			return -1
		case a.Open != nil && b.Open == nil:
			return 1
		}
		return strings.Compare(a.Path, b.Path)
	})
	var entries strings.Builder
	for _, e := range edits {
		if err := Check(e.Path); err != nil {
			return "", err
		}
		if e.Open == nil {
			fmt.Fprintf(&entries, "0 %040d\t%s\x00", 0, e.Path)
			continue
		}
		id, err := r.store(ctx, e)
		if err != nil {
			return "", fmt.Errorf("store %s: %w", e.Path, err)
		}
		mode := "100644"
		if e.Exec {
			mode = "100755"
		}
		fmt.Fprintf(&entries, "%s %s\t%s\x00", mode, id, e.Path)
	}
	err = r.scratch(func(index string) error {
		g := r.with(index)
		if _, err := g.Line(ctx, "read-tree", from); err != nil {
			return err
		}
		if _, err := g.Output(ctx, entries.String(), "update-index", "-z", "--index-info"); err != nil {
			return err
		}
		tree, err = g.Line(ctx, "write-tree")
		return err
	})
	return tree, err
}

// Check refuses a path that no file of a parcel may have: outside of the root, or of git or
// Lockkeeper.
func Check(path string) error {
	name, reserved := protect.HasReserved(path)
	switch {
	case reserved:
		return fmt.Errorf("%q has the reserved name %q", path, name)
	case !filepath.IsLocal(path) || path != filepath.Clean(path) || strings.ContainsRune(path, 0) || path == ".":
		return fmt.Errorf("%q is no path below the root", path)
	}
	return nil
}

func (r *Repo) store(ctx context.Context, e Edit) (id string, err error) {
	body, err := e.Open()
	if err != nil {
		return "", err
	}
	var out strings.Builder
	err = r.git.Run(ctx, body, &out, "hash-object", "-w", "--stdin", "--no-filters")
	return strings.TrimSpace(out.String()), errors.Join(err, body.Close())
}

// Trees returns the trees base and tree of a parcel.
func (r *Repo) Trees(ctx context.Context, commit string) (base, tree string, err error) {
	out, err := r.git.Line(ctx, "rev-parse", commit+":base", commit+":tree")
	base, tree, _ = strings.Cut(out, "\n")
	return base, tree, err
}

// An Edited is one difference between two trees.
type Edited struct {
	Path     string
	Was, Now string // modes such as 100644; 000000: nothing
	ID       string // the new blob
}

// Modes of files in trees.
const (
	ModeNone = "000000"
	ModeFile = "100644"
	ModeExec = "100755"
)

// Edits lists the differences between two trees, at most a number of them.
func (r *Repo) Edits(ctx context.Context, from, to string, most int) (list []Edited, err error) {
	out, err := r.git.Output(ctx, "", "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", from, to)
	if err != nil {
		return nil, err
	}
	words := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	for ; len(words) >= 2; words = words[2:] {
		f := strings.Fields(strings.TrimPrefix(words[0], ":")) // modes and ids before and after, and a letter
		if len(f) != 5 {
			return nil, fmt.Errorf("git diff-tree says %q", words[0])
		}
		list = append(list, Edited{Path: words[1], Was: f[0], Now: f[1], ID: f[3]})
		if len(list) > most {
			return nil, fmt.Errorf("more than %d files differ", most)
		}
	}
	return list, nil
}

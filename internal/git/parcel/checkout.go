package parcel

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// A Checkout is a directory with the files of parcels, one after the other. It is a repository that
// reads the objects of the clone, so what an agent asks git about is there.
type Checkout struct {
	clone *Repo
	repo  *Repo
}

// NewCheckout opens the checkout in a directory, or makes it.
func (r *Repo) NewCheckout(ctx context.Context, dir string) (*Checkout, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if _, err := os.Lstat(filepath.Join(dir, ".git")); errors.Is(err, fs.ErrNotExist) {
		g := r.git
		if _, err := g.Line(ctx, "init", "--quiet", "--template=", dir); err != nil {
			return nil, err
		}
		objects, err := r.git.Line(ctx, "rev-parse", "--path-format=absolute", "--git-path", "objects")
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(dir, ".git", "objects", "info", "alternates"), []byte(objects+"\n"), 0o600); err != nil {
			return nil, err
		}
	}
	own, err := Open(ctx, dir, r.temp, r.git.Env)
	return &Checkout{clone: r, repo: own}, err
}

// Enter brings the files of the directory to the tree base of a parcel, and HEAD to its parent, as on
// the machine that sent it.
func (c *Checkout) Enter(ctx context.Context, commit string) error {
	base, _, err := c.clone.Trees(ctx, commit)
	if err != nil {
		return err
	}
	g := c.repo.with(filepath.Join(c.repo.dir, "lockkeeper-index"))
	if _, err := g.Line(ctx, "read-tree", "--reset", "-u", base); err != nil {
		return err
	}
	head, err := c.repo.git.Line(ctx, "rev-parse", "--verify", "--quiet", commit+"^1")
	if err != nil { // the sender has no commit yet
		return nil
	}
	if _, err := c.repo.git.Line(ctx, "update-ref", "--no-deref", "HEAD", head); err != nil {
		return err
	}
	_, err = c.repo.git.Line(ctx, "read-tree", head)
	return err
}

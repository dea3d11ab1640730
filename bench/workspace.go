package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper/internal/agent/workspace"
)

// The tree that is copied, alone and many times at once.
const (
	copiedFiles   = 10_000
	copiedSize    = 20 << 10
	copiersAtOnce = 16
	crowdRounds   = 2                // at most: a turn of sixteen copies takes 3.2 GB of the disk
	copiedRest    = 61 * time.Second // until workspace.Sums takes a new file for one that rests
)

// copier makes a copy of a tree at a path where nothing is.
type copier func(to string) error

// copies makes copies in turns, atOnce each time, and returns how long that took, in nanoseconds,
// by copier and turn. All are kept until the bench ends: ext4 takes several times as long to make
// files where it freed some in the last minutes, so the copier after a removal would pay for it.
// For the same reason each turn starts only when all earlier writes are on the disk.
func (b *bench) copies(name string, rounds, atOnce int, copiers ...copier) ([][]float64, error) {
	if err := spreadOut(b.dir); err != nil {
		return nil, err
	}
	out := make([][]float64, len(copiers))
	for turn := range rounds + 1 {
		for k := range copiers {
			i := (k + turn) % len(copiers) // no side always goes first
			each := make([]side, atOnce)
			for n := range each {
				to := filepath.Join(b.dir, fmt.Sprintf("%s-%d-%d-%d", name, turn, i, n))
				each[n] = func(int) error { return copiers[i](to) }
			}
			unix.Sync()
			began := monotonic()
			if err := crowd(each)(1); err != nil {
				return nil, err
			}
			if turn > 0 { // the first is to warm up
				out[i] = append(out[i], float64(monotonic()-began))
			}
		}
	}
	return out, nil
}

// copiedTree makes a tree, completely committed, with its repository beside it: so
// that copying the tree does not copy that.
func copiedTree(ctx context.Context, b *bench, name string) (root string, err error) {
	root = filepath.Join(b.dir, "copied-"+name)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range copiedFiles {
		var text strings.Builder
		for text.Len() < copiedSize {
			fmt.Fprintf(&text, "  def part_%x; unit_%x(%d); end\n", random.Uint64(), random.Uint32(), random.IntN(100))
		}
		file := filepath.Join(root, fmt.Sprint("part", i/400), fmt.Sprint("unit", i/20), fmt.Sprintf("file%d.rb", i))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text.String()[:copiedSize]), 0o644)); err != nil {
			return "", err
		}
	}
	for _, args := range [][]string{
		{"init", "-q", "--separate-git-dir", root + ".git"}, {"config", "gc.auto", "0"}, {"config", "core.looseCompression", "0"}, {"add", "."},
		{"-c", "user.name=bench", "-c", "user.email=bench@example.org", "commit", "-q", "-m", "all"}, {"repack", "-a", "-d", "-q", "--window=0"},
	} {
		if err := command(ctx, "git", append([]string{"-C", root}, args...)...); err != nil {
			return "", err
		}
	}
	return root, nil
}

func command(ctx context.Context, name string, args ...string) error {
	if out, err := exec.CommandContext(ctx, name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// ourCopies, cpCopies and gitCopies copy a tree.
func ourCopies(ctx context.Context, root string, sums *workspace.Sums) copier {
	return func(to string) error {
		w, err := workspace.Make(ctx, workspace.Options{Root: root, Dir: to, Sums: sums})
		if err != nil {
			return err
		}
		return w.Close(ctx, true)
	}
}

func cpCopies(ctx context.Context, root string) copier {
	return func(to string) error { return command(ctx, "cp", "-a", root, to) }
}

func gitCopies(ctx context.Context, root string) copier {
	return func(to string) error {
		return command(ctx, "git", "-C", root, "worktree", "add", "-q", "--detach", to)
	}
}

func workspaceMake(ctx context.Context, b *bench) ([]row, error) {
	root, err := copiedTree(ctx, b, "alone")
	if err != nil {
		return nil, err
	}
	t, err := b.copies("alone", b.rounds, 1, ourCopies(ctx, root, nil), cpCopies(ctx, root), gitCopies(ctx, root))
	if err != nil {
		return nil, err
	}
	return []row{
		row{What: "Workspace of 10,000 files, to cp -a", Ours: ns(median(t[0])), Peer: ns(median(t[1])),
			How: "A tree of 200 MB is copied, each file hashed, checked for changes meanwhile, and recorded, with a private repository. The peer copies the files. A turn is one copy, and all are kept.",
		}.atMost(median(ratios(t[0], t[1])), 1.5, "%.2f×"),
		row{What: "Workspace of 10,000 files, to git worktree add", Ours: ns(median(t[0])), Peer: ns(median(t[2])),
			How: "The same. The peer checks the commit out of one pack, contains only committed files, and shares refs and configuration with the repository.",
		}.atMost(median(ratios(t[0], t[2])), 1.5, "%.2f×"),
	}, nil
}

func workspaceCrowd(ctx context.Context, b *bench) ([]row, error) {
	root, err := copiedTree(ctx, b, "crowd")
	if err != nil {
		return nil, err
	}
	// As in a run, what was hashed once is not hashed again, once it has rested: a file of
	// a codebase has, most often.
	select {
	case <-time.After(copiedRest):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	t, err := b.copies("crowd", min(b.rounds, crowdRounds), copiersAtOnce, ourCopies(ctx, root, workspace.NewSums()), cpCopies(ctx, root))
	if err != nil {
		return nil, err
	}
	return []row{row{What: "Sixteen workspaces at once, to sixteen cp -a", Ours: ns(median(t[0])), Peer: ns(median(t[1])),
		How: "The same tree copied sixteen times at once, until all copies are complete; at most two turns, each started after the disk has written everything. As in a run, files that do not change are hashed once, before.",
	}.atMost(median(ratios(t[0], t[1])), 1.5, "%.2f×")}, nil
}

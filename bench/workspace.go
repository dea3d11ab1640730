package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper/internal/agent/workspace"
)

// These constants describe the tree that is copied, alone and many times at once.
const (
	copiedFiles   = 10_000
	copiedSize    = 20 << 10
	copiersAtOnce = 16
	copiedRest    = 61 * time.Second // the age from which workspace.Sums trusts the recorded hash of a file
)

// A copier copies a tree to a path that does not exist yet.
type copier func(to string)

// copies makes copies in turns, atOnce each time, and returns the duration in nanoseconds by
// copier and turn. All copies stay until the bench ends. ext4 takes several times as long to
// create files where it freed some in the last minutes. So a removal would slow down the next
// copier. For the same reason each turn starts only when all earlier writes are on the disk.
func (b *bench) copies(name string, rounds, atOnce int, copiers ...copier) [][]float64 {
	spreadOut(b.dir)
	out := make([][]float64, len(copiers))
	for turn := range rounds + 1 {
		for k := range copiers {
			i := (k + turn) % len(copiers) // no side always goes first
			each := make([]side, atOnce)
			for n := range each {
				to := filepath.Join(b.dir, fmt.Sprintf("%s-%d-%d-%d", name, turn, i, n))
				each[n] = func(int) { copiers[i](to) }
			}
			unix.Sync()
			began := monotonic()
			crowd(each)(1)
			if turn > 0 { // the first turn warms up the caches
				out[i] = append(out[i], float64(monotonic()-began))
			}
		}
	}
	return out
}

// copiedTree creates a tree with all files committed. Its repository is beside it, so
// that copying the tree does not copy the repository.
func copiedTree(b *bench, name string) (root string) {
	root = filepath.Join(b.dir, "copied-"+name)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range copiedFiles {
		var text strings.Builder
		for text.Len() < copiedSize {
			fmt.Fprintf(&text, "  def part_%x; unit_%x(%d); end\n", random.Uint64(), random.Uint32(), random.IntN(100))
		}
		writeFile(filepath.Join(root, fmt.Sprint("part", i/400), fmt.Sprint("unit", i/20), fmt.Sprintf("file%d.rb", i)), []byte(text.String()[:copiedSize]))
	}
	for _, args := range [][]string{
		{"init", "-q", "--separate-git-dir", root + ".git"}, {"config", "gc.auto", "0"}, {"config", "core.looseCompression", "0"}, {"add", "."},
		{"-c", "user.name=bench", "-c", "user.email=bench@example.org", "commit", "-q", "-m", "all"}, {"repack", "-a", "-d", "-q", "--window=0"},
	} {
		timed(exec.CommandContext(b.ctx, "git", append([]string{"-C", root}, args...)...))
	}
	return root
}

// ourCopies copies a tree into workspaces.
func ourCopies(b *bench, root string, sums *workspace.Sums) copier {
	return func(to string) {
		w := get(workspace.Make(b.ctx, workspace.Options{Root: root, Dir: to, Sums: sums}))
		check(w.Close(b.ctx, true))
	}
}

// copiesBy copies a tree with a command, whose last argument is the path of the copy.
func copiesBy(b *bench, name string, args ...string) copier {
	return func(to string) { timed(exec.CommandContext(b.ctx, name, append(slices.Clone(args), to)...)) }
}

func workspaceMake(b *bench) []row {
	root := copiedTree(b, "alone")
	t := b.copies("alone", b.rounds, 1, ourCopies(b, root, nil), copiesBy(b, "cp", "-a", root),
		copiesBy(b, "git", "-C", root, "worktree", "add", "-q", "--detach"))
	return []row{
		row{What: "Workspace of 10,000 files, to cp -a", Ours: ns(median(t[0])), Peer: ns(median(t[1])),
			How: "A tree of 200 MB is copied. Each file is hashed, checked for changes during the copy, and recorded. A private repository is made. The peer copies the files. A turn is one copy, and all copies are kept.",
		}.atMost(median(ratios(t[0], t[1])), 1.5, "%.2f×"),
		row{What: "Workspace of 10,000 files, to git worktree add", Ours: ns(median(t[0])), Peer: ns(median(t[2])),
			How: "The workspace is made in the same way. The peer checks the commit out of one pack, contains only committed files, and shares refs and configuration with the repository.",
		}.atMost(median(ratios(t[0], t[2])), 1.5, "%.2f×"),
	}
}

// letRest waits until the files that were just written are old enough. A run hashes a file only once if
// the file has not changed for a while, and most files of a codebase are that old.
func (b *bench) letRest() {
	select {
	case <-time.After(copiedRest):
	case <-b.ctx.Done():
		check(context.Cause(b.ctx))
	}
}

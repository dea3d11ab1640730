package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/lock"
	"lockkeeper/tree"
)

// A landed tree has a gate, and a grant on some of its files.
type landed struct {
	*bench
	gate  *gate.Gate
	grant *lock.Grant
	paths []string
	turn  int
}

// small returns the content of a file, which differs with each turn.
func small(turn int) []byte {
	return append(bytes.Repeat([]byte("class User < ApplicationRecord; end\n"), 100), fmt.Sprintf("# %d\n", turn)...)
}

// A batch has batchFiles files in batchDirs directories.
const (
	batchFiles = 100
	batchDirs  = 10
)

func batchPaths() []string {
	paths := make([]string, batchFiles)
	for i := range paths {
		paths[i] = fmt.Sprintf("app/models/part_%02d/file_%03d.rb", i%batchDirs, i)
	}
	return paths
}

// plant creates the files of a tree.
func plant(dir string, paths []string) {
	for _, p := range paths {
		writeFile(filepath.Join(dir, p), small(-1))
	}
}

// newLanded creates a tree that stores its locks in SQLite.
func newLanded(b *bench, name string, paths []string) *landed {
	dir := filepath.Join(b.dir, name+"-"+rand.Text())
	check(os.MkdirAll(filepath.Join(dir, ".lockkeeper"), 0o700))
	plant(dir, paths)
	var g *gate.Gate
	store := b.openSQLite(b.createSQLite(filepath.Join(dir, ".lockkeeper", "state.db")))
	locks := b.manager(store, lock.Options{RecoverLandings: func(ctx context.Context, id string) error { return g.RecoverLandings(ctx, id) }})
	root := get(tree.Open(dir))
	b.cleanup(root.Close)
	g = get(gate.Open(root, store, locks, gate.Options{}))
	b.cleanup(func() error { return g.Close(b.ctx) })
	grant := get(locks.TryAcquire(b.ctx, lockkeeper.Request{Holder: "bench", Locks: writes(paths...)}))
	return &landed{bench: b, gate: g, grant: grant, paths: paths}
}

func (l *landed) write(path string) {
	l.turn++
	get(l.gate.Write(l.ctx, &l.grant.Grant, path, small(l.turn)))
}

// batch lands all files as one unit.
func (l *landed) batch() {
	l.turn++
	changes := make([]gate.Change, len(l.paths))
	for i, p := range l.paths {
		changes[i] = gate.Put(p, small(l.turn))
	}
	get(l.gate.Commit(l.ctx, &l.grant.Grant, changes))
}

func gateWrite(b *bench) []row {
	ours, peer := gates(b, "write", batchPaths()[:pathsPerGrant])
	turn, one := 0, ours.paths[:1]
	t := b.race(diskSlice,
		times(func() { ours.write(one[0]) }),
		times(func() { turn++; peer.write(one, small(turn)) }))
	return []row{row{
		What: "Gate: one file, to a hand-written durable write", Ours: ns(median(t[0])), Peer: ns(median(t[1])),
		How: "A file of 3.6 kB is replaced through the gate, under a grant on ten files. This includes every step: three checks, stage, sync, decision in SQLite FULL, exchange, comparison, sync of the directory, and keeping the original. The peer writes a temporary file, syncs it, renames it over the target and syncs the directory. It inserts the same rows in one SQLite FULL transaction. It checks, fences and keeps nothing.",
	}.atMost(median(ratios(t[0], t[1])), 1.4, "%.2f×")}
}

func gateBatch(b *bench) []row {
	ours, peer := gates(b, "batch", batchPaths())
	turn := 0
	t := b.race(diskSlice,
		times(ours.batch),
		times(func() {
			for _, p := range ours.paths {
				ours.write(p)
			}
		}),
		times(func() { turn++; peer.write(ours.paths, small(turn)) }))
	return []row{
		row{What: "Gate: 100 files in one commit, faster than one by one", Ours: ns(median(t[0])), Peer: ns(median(t[1])) + " (ours, one by one)",
			How: "The same 100 files in ten directories, as one commit and as a hundred.",
		}.atLeast(median(ratios(t[1], t[0])), 2.5, "%.1f×"),
		row{What: "Gate: 100 files in one commit, to a hand-written batch", Ours: ns(median(t[0])), Peer: ns(median(t[2])),
			How: "The peer writes and syncs the 100 files sixteen at a time, renames them, and syncs the ten directories in parallel. It inserts the same rows in one SQLite FULL transaction.",
		}.atMost(median(ratios(t[0], t[2])), 1.4, "%.2f×"),
	}
}

func gateChecks(b *bench) []row {
	ours := newLanded(b, "gate-checks", batchPaths()[:pathsPerGrant])
	t := b.race(memorySlice, times(func() { check(errors.Join(ours.gate.Check(b.ctx, &ours.grant.Grant, ours.paths[0])...)) }))
	return []row{row{What: "Gate: the three checks", Ours: ns(median(t[0])), Peer: "–",
		How: "The gate checks that the path is allowed, that the grant is live and the token its own, and that the path is held for writing. The grant holds ten files, in SQLite. Nothing is hashed.",
	}.atMost(median(t[0])/1e3, 20, "%.1f µs")}
}

// topDir is FS_TOPDIR_FL of linux/fs.h, which x/sys does not have.
const topDir = 0x20000

// spreadOut asks the disk to place the directories in dir apart from each other. ext4
// avoids inodes that were freed in the last minutes; the peer frees one with
// every write, which must not slow down our side. The name of a directory determines
// its place, so each run uses a new name. Other disks need no such
// hint.
func spreadOut(dir string) {
	f := get(os.Open(dir))
	defer f.Close()
	flags, err := unix.IoctlGetUint32(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, int(flags|topDir))
	}
	if !errors.Is(err, unix.ENOTTY) && !errors.Is(err, unix.EOPNOTSUPP) {
		check(err)
	}
}

// gates creates both sides of the comparison.
func gates(b *bench, name string, paths []string) (*landed, *minimalGate) {
	spreadOut(b.dir)
	ours := newLanded(b, "gate-"+name, paths)
	dir := filepath.Join(b.dir, "gate-"+name+"-peer")
	plant(dir, paths)
	return ours, openMinimalGate(b, b.createSQLite(dir+".db"), dir)
}

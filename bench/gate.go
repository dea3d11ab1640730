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
	"lockkeeper/store/sqlstore"
	"lockkeeper/tree"
)

// landed is a tree with a gate, and a grant on some of its files.
type landed struct {
	gate  *gate.Gate
	grant *lock.Grant
	paths []string
	turn  int
	close func() error
}

// small is the content of a file, different with each turn.
func small(turn int) []byte {
	return append(bytes.Repeat([]byte("class User < ApplicationRecord; end\n"), 100), fmt.Sprintf("# %d\n", turn)...)
}

// batchFiles is how many files a batch has, in batchDirs directories.
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

// plant makes the files of a tree.
func plant(dir string, paths []string) error {
	for _, p := range paths {
		p = filepath.Join(dir, p)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, small(-1), 0o644)); err != nil {
			return err
		}
	}
	return nil
}

// newLanded makes a tree whose locks are kept in SQLite.
func newLanded(ctx context.Context, b *bench, name string, paths []string) (_ *landed, err error) {
	dir := filepath.Join(b.dir, name+"-"+rand.Text())
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, ".lockkeeper"), 0o700), plant(dir, paths)); err != nil {
		return nil, err
	}
	db := filepath.Join(dir, ".lockkeeper", "state.db")
	if err := sqlstore.CreateSQLite(ctx, db, "bench"); err != nil {
		return nil, err
	}
	store, err := sqlstore.OpenSQLite(ctx, db, "bench", sqlstore.Options{})
	if err != nil {
		return nil, err
	}
	var g *gate.Gate
	locks := lock.New(store, lock.Options{RecoverLandings: func(ctx context.Context, id string) error { return g.RecoverLandings(ctx, id) }})
	root, err := tree.Open(dir)
	if err != nil {
		return nil, err
	}
	if g, err = gate.Open(root, store, locks, gate.Options{}); err != nil {
		return nil, err
	}
	l := &landed{gate: g, paths: paths}
	l.close = func() error { return errors.Join(g.Close(ctx), locks.Close(), store.Close(), root.Close()) }
	l.grant, err = locks.TryAcquire(ctx, lockkeeper.Request{Holder: "bench", Locks: writes(paths)})
	return l, err
}

// write lands one file.
func (l *landed) write(ctx context.Context, path string) error {
	l.turn++
	_, err := l.gate.Write(ctx, &l.grant.Grant, path, small(l.turn))
	return err
}

// batch lands all files as one unit.
func (l *landed) batch(ctx context.Context) error {
	l.turn++
	changes := make([]gate.Change, len(l.paths))
	for i, p := range l.paths {
		changes[i] = gate.Put(p, small(l.turn))
	}
	_, err := l.gate.Commit(ctx, &l.grant.Grant, changes)
	return err
}

func times(do func() error) side {
	return func(n int) error {
		for range n {
			if err := do(); err != nil {
				return err
			}
		}
		return nil
	}
}

func gateWrite(ctx context.Context, b *bench) ([]row, error) {
	ours, peer, done, err := gates(ctx, b, "write", batchPaths()[:pathsPerGrant])
	if err != nil {
		return nil, err
	}
	defer done()
	turn, one := 0, ours.paths[:1]
	t, err := b.race(diskSlice,
		times(func() error { return ours.write(ctx, one[0]) }),
		times(func() error { turn++; return peer.write(one, small(turn)) }))
	if err != nil {
		return nil, err
	}
	return []row{row{
		What: "Gate: one file, to a hand-written durable write", Ours: ns(median(t[0])), Peer: ns(median(t[1])),
		How: "A file of 3.6 kB is replaced through the gate, under a grant on ten: three checks, staged, synced, decided in SQLite FULL, exchanged, compared, directory synced, original kept. The peer writes a temporary file, syncs it, renames it over the target, syncs the directory and inserts the same rows in one SQLite FULL transaction; it checks, fences and keeps nothing.",
	}.atMost(median(ratios(t[0], t[1])), 1.4, "%.2f×")}, nil
}

func gateBatch(ctx context.Context, b *bench) ([]row, error) {
	ours, peer, done, err := gates(ctx, b, "batch", batchPaths())
	if err != nil {
		return nil, err
	}
	defer done()
	turn := 0
	t, err := b.race(diskSlice,
		times(func() error { return ours.batch(ctx) }),
		times(func() error {
			for _, p := range ours.paths {
				if err := ours.write(ctx, p); err != nil {
					return err
				}
			}
			return nil
		}),
		times(func() error { turn++; return peer.write(ours.paths, small(turn)) }))
	if err != nil {
		return nil, err
	}
	return []row{
		row{What: "Gate: 100 files in one commit, faster than one by one", Ours: ns(median(t[0])), Peer: ns(median(t[1])) + " (ours, one by one)",
			How: "The same 100 files in ten directories, as one commit and as a hundred.",
		}.atLeast(median(ratios(t[1], t[0])), 2.5, "%.1f×"),
		row{What: "Gate: 100 files in one commit, to a hand-written batch", Ours: ns(median(t[0])), Peer: ns(median(t[2])),
			How: "The peer writes and syncs the 100 files sixteen at a time, renames them, syncs the ten directories in parallel and inserts the same rows in one SQLite FULL transaction.",
		}.atMost(median(ratios(t[0], t[2])), 1.4, "%.2f×"),
	}, nil
}

func gateChecks(ctx context.Context, b *bench) ([]row, error) {
	ours, err := newLanded(ctx, b, "gate-checks", batchPaths()[:pathsPerGrant])
	if err != nil {
		return nil, err
	}
	defer ours.close()
	t, err := b.race(memorySlice, times(func() error { return errors.Join(ours.gate.Check(ctx, &ours.grant.Grant, ours.paths[0])...) }))
	if err != nil {
		return nil, err
	}
	return []row{row{What: "Gate: the three checks", Ours: ns(median(t[0])), Peer: "–",
		How: "Path identity and allowlist, grant live with the right token, path held for writing; the grant holds ten files, in SQLite. Nothing is hashed.",
	}.atMost(median(t[0])/1e3, 20, "%.1f µs")}, nil
}

// topDir is FS_TOPDIR_FL of linux/fs.h, which x/sys does not have.
const topDir = 0x20000

// spreadOut asks the disk to place the directories in dir apart from each other. ext4
// looks around inodes that were freed in the last minutes; the peer frees one with
// every write, and ours should not have to pay for that. Where it places a directory
// follows from its name, so each run uses a new name. Other disks need no such
// hint.
func spreadOut(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	flags, err := unix.IoctlGetUint32(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, int(flags|topDir))
	}
	if errors.Is(err, unix.ENOTTY) || errors.Is(err, unix.EOPNOTSUPP) {
		return nil
	}
	return err
}

// gates makes both sides.
func gates(ctx context.Context, b *bench, name string, paths []string) (*landed, *minimalGate, func() error, error) {
	if err := spreadOut(b.dir); err != nil {
		return nil, nil, nil, err
	}
	ours, err := newLanded(ctx, b, "gate-"+name, paths)
	if err != nil {
		return nil, nil, nil, err
	}
	path, err := newSQLite(ctx, b, "gate-"+name+"-peer")
	if err != nil {
		return nil, nil, nil, err
	}
	dir := filepath.Join(b.dir, "gate-"+name+"-peer")
	if err := plant(dir, paths); err != nil {
		return nil, nil, nil, err
	}
	peer, err := openMinimalGate(ctx, path, dir)
	if err != nil {
		return nil, nil, nil, err
	}
	return ours, peer, func() error { return errors.Join(ours.close(), peer.close()) }, nil
}

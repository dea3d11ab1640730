package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"lockkeeper/internal/agent/sandbox"
	"lockkeeper/internal/agent/workspace"
)

// These constants describe the trees below workspaces on layers.
const (
	layeredSize  = 400 // bytes of a file
	layeredTurns = 10  // workspaces in a round
	landedFiles  = 10  // files of a landing
)

// layeredTree makes a tree of small files without a repository.
func layeredTree(b *bench, files int) (root string) {
	root = filepath.Join(b.dir, fmt.Sprint("layered-", files))
	layeredFiles(root, files)
	return root
}

func layeredFiles(root string, files int) {
	text := []byte(strings.Repeat("a line\n", layeredSize/7))
	for i := range files {
		writeFile(filepath.Join(root, fmt.Sprint("part", i/2000), fmt.Sprint("unit", i/40), fmt.Sprintf("file%d.rb", i)), text)
	}
}

// A lander lands files in the tree below a base.
type lander struct {
	root  string
	seq   uint64
	paths []string // of the last landing
}

func (l *lander) land(text string) {
	l.seq, l.paths = l.seq+1, nil
	for i := range landedFiles {
		path := filepath.Join(fmt.Sprint("part", i%5), fmt.Sprint("unit", i%5*50), fmt.Sprintf("file%d.rb", i%5*2000+i))
		writeFile(filepath.Join(l.root, path), []byte(text))
		l.paths = append(l.paths, path)
	}
}

func (l *lander) landed(_ context.Context, after uint64) ([]string, uint64, error) {
	if after == l.seq {
		return nil, l.seq, nil
	}
	return l.paths, l.seq, nil
}

// openBase copies a tree to a base of workspaces.
func openBase(b *bench, l *lander) *workspace.Base {
	base := get(workspace.NewBase(b.ctx, workspace.Options{Root: l.root, Dir: l.root + "-workspaces", Landed: l.landed, Sums: workspace.NewSums()}))
	b.cleanups = append(b.cleanups, func() error { return base.Close(b.ctx) })
	check(base.Prepare(b.ctx))
	return base
}

// useLayers makes a workspace, changes two files in the sandbox, reads the changes, and closes it.
func useLayers(b *bench, level sandbox.Level, base *workspace.Base) (blocks int64) {
	w := get(base.Make(b.ctx, nil))
	stack, tree, ok, err := w.Overlay()
	if check(err); !ok {
		panic("the workspace is a copy")
	}
	argv := get(sandbox.Wrap(level, sandbox.Confinement{Overlays: []sandbox.Overlay{{Stack: stack, Sub: tree, At: w.Dir()}}},
		[]string{"sh", "-c", "echo more >> part0/unit0/file0.rb; echo new > part0/new"}))
	cmd := exec.CommandContext(b.ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Stderr = w.Dir(), os.Stderr
	check(cmd.Run())
	if changes := get(w.Changes(b.ctx)); len(changes) != 2 {
		panic(fmt.Sprint("the changes are ", changes))
	}
	blocks = blocksBelow(w.Home())
	check(w.Close(b.ctx, false))
	return blocks
}

// blocksBelow returns how many bytes of the disk a directory takes with everything below it.
func blocksBelow(dir string) (sum int64) {
	check(filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		var at unix.Stat_t
		if err == nil {
			err = unix.Lstat(path, &at)
		}
		sum += at.Blocks * 512
		return err
	}))
	return sum
}

// catchUp lands files and returns how long the next workspace takes to have them.
func catchUp(b *bench, l *lander, base *workspace.Base) (rows []row) {
	var took []float64
	for turn := range b.rounds * layeredTurns {
		l.land(fmt.Sprint("landed ", turn))
		began := monotonic()
		check(base.Prepare(b.ctx))
		took = append(took, float64(monotonic()-began))
	}
	return []row{row{What: fmt.Sprintf("Base up to date after a landing of %d files, 100,000 files", landedFiles), Ours: ns(median(took)),
		How: "Files are written in the tree and reported as landed, and the base gets a layer with them. Few of the turns include a scan of the tree, because scans take at most a twentieth of the time.",
	}.atMost(median(took)/1e6, 50, "%.0f ms")}
}

func workspaceLayers(b *bench) (rows []row) {
	level := get(sandbox.Probe(b.ctx))
	var copied float64 // what cp -a of the smallest tree takes
	for _, size := range []struct {
		files int
		most  float64 // milliseconds
	}{{10_000, 40}, {100_000, 80}, {500_000, 80}} {
		root := layeredTree(b, size.files)
		if copied == 0 {
			began := monotonic()
			copiesBy(b, "cp", "-a", root)(root + "-copy")
			copied = float64(monotonic() - began)
		}
		l := &lander{root: root}
		base := openBase(b, l)
		useLayers(b, level, base)
		var took []float64
		for range b.rounds * layeredTurns {
			began := monotonic()
			useLayers(b, level, base)
			took = append(took, float64(monotonic()-began))
		}
		what := fmt.Sprintf("Workspace on layers, %d files", size.files)
		how := "A workspace is made on a base of the tree, a command in the sandbox changes a file and makes another, the changes are read, and the workspace is removed."
		rows = append(rows, row{What: what, Ours: ns(median(took)), How: how}.atMost(median(took)/1e6, size.most, "%.0f ms"))
		if size.files == 10_000 {
			rows = append(rows, row{What: what + ", to cp -a", Ours: ns(median(took)), Peer: ns(copied), How: how + " The peer copies the tree."}.
				atMost(median(took)/copied, 0.05, "%.3f×"))
			rows = append(rows, crowdOnLayers(b, level, base, copied)...)
		}
		if size.files == 100_000 {
			rows = append(rows, catchUp(b, l, base)...)
		}
	}
	return rows
}

// crowdOnLayers uses workspaces at once. The argument copied is the time of one cp -a.
func crowdOnLayers(b *bench, level sandbox.Level, base *workspace.Base, copied float64) []row {
	var took []float64
	var most atomic.Int64
	for range b.rounds {
		began := monotonic()
		var all sync.WaitGroup
		for range copiersAtOnce {
			all.Go(func() { most.Store(max(most.Load(), useLayers(b, level, base))) })
		}
		all.Wait()
		took = append(took, float64(monotonic()-began))
	}
	const what = "Sixteen workspaces on layers at once, 10,000 files"
	const how = "The same, sixteen times at once."
	return []row{
		row{What: what, Ours: ns(median(took)), How: how}.atMost(median(took)/1e6, 250, "%.0f ms"),
		row{What: what + ", to sixteen cp -a", Ours: ns(median(took)), Peer: ns(copiersAtOnce * copied), How: how + " The peer is one copy of the tree, times sixteen."}.
			atMost(median(took)/(copiersAtOnce*copied), 0.03, "%.3f×"),
		row{What: what + ", disk use of each", Ours: fmt.Sprintf("%d kB", most.Load()>>10), How: "The blocks of the workspace's directory before it is removed, of the largest one."}.
			atMost(float64(most.Load())/(1<<20), 2, "%.2f MB"),
	}
}

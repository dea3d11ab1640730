package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"lockkeeper/internal/agent/sandbox"
	"lockkeeper/internal/agent/workspace"
)

// These constants describe the trees below workspaces on layers.
const (
	layeredSize  = 400 // bytes of a file
	layeredTurns = 10  // workspaces in a round
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

// openBase copies a tree to a base of workspaces.
func openBase(b *bench, root string) *workspace.Base {
	base := get(workspace.NewBase(b.ctx, workspace.Options{Root: root, Dir: root + "-workspaces", Sums: workspace.NewSums()}))
	b.cleanups = append(b.cleanups, func() error { return base.Close(b.ctx) })
	check(base.Prepare(b.ctx))
	return base
}

// useLayers makes a workspace, changes two files in the sandbox, reads the changes, and closes it.
func useLayers(b *bench, level sandbox.Level, base *workspace.Base) {
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
	check(w.Close(b.ctx, false))
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
		base := openBase(b, root)
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
			began := monotonic()
			var all sync.WaitGroup
			for range copiersAtOnce {
				all.Go(func() { useLayers(b, level, base) })
			}
			all.Wait()
			crowd := float64(monotonic() - began)
			rows = append(rows, row{What: "Sixteen workspaces on layers at once", Ours: ns(crowd), How: "The same, sixteen times at once."}.atMost(crowd/1e6, 250, "%.0f ms"))
		}
	}
	return rows
}

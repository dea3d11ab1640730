package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const commandsPerRound = 20

// build builds a command of the product into a directory and returns its path.
func (b *bench) build(name, dir string) string {
	bin := filepath.Join(dir, name)
	build := exec.CommandContext(b.ctx, "go", "build", "-o", bin, "./cmd/"+name)
	build.Dir, build.Env = "..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		check(skipped(fmt.Sprintf("the command does not build: %.300s", out)))
	}
	return bin
}

// timed runs a command and returns its output and its duration.
func timed(cmd *exec.Cmd) (out []byte, took time.Duration) {
	began := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		check(fmt.Errorf("%s %s: %w: %s", filepath.Base(cmd.Path), strings.Join(cmd.Args[1:], " "), err, out))
	}
	return out, time.Since(began)
}

func commandAcquire(b *bench) []row {
	bin := b.build("lockkeeper", b.dir)
	space := filepath.Join(b.dir, "space")
	check(os.Mkdir(space, 0o700))
	home := append(os.Environ(), "HOME="+b.dir, "XDG_STATE_HOME=", "XDG_CONFIG_HOME=", "LOCKKEEPER_STORE=")
	inSpace := func(name string, args ...string) float64 {
		cmd := exec.CommandContext(b.ctx, name, args...)
		cmd.Dir, cmd.Env = space, home
		_, took := timed(cmd)
		return float64(took)
	}
	inSpace(bin, "init")
	var ours, nothing []float64
	for round := range b.rounds {
		for i := range commandsPerRound {
			path := fmt.Sprintf("app/part_%d/file_%d.rb", round, i)
			ours = append(ours, inSpace(bin, "lock", "acquire", "--holder", "bench", "--write", path))
			nothing = append(nothing, inSpace("true"))
		}
	}
	return []row{row{
		What: "A whole `lockkeeper lock acquire`", Ours: ns(median(ours)), Peer: ns(median(nothing)) + " (`true`)",
		How: "From the start of the process to its exit, with one durable transaction on SQLite; for comparison, a program that does nothing.",
	}.atMost(median(ours)/1e6, 15, "%.1f ms")}
}

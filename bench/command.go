package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

const commandsPerRound = 20

func commandAcquire(ctx context.Context, b *bench) ([]row, error) {
	bin := filepath.Join(b.dir, "lockkeeper")
	build := exec.CommandContext(ctx, "go", "build", "-o", bin, "./cmd/lockkeeper")
	build.Dir, build.Env = "..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, skipped(fmt.Sprintf("the command does not build: %.300s", out))
	}
	space := filepath.Join(b.dir, "space")
	if err := os.Mkdir(space, 0o700); err != nil {
		return nil, err
	}
	home := append(os.Environ(), "HOME="+b.dir, "XDG_STATE_HOME=", "XDG_CONFIG_HOME=", "LOCKKEEPER_STORE=")
	inSpace := func(name string, args ...string) (time.Duration, error) {
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir, cmd.Env = space, home
		began := time.Now()
		out, err := cmd.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%s %v: %w: %s", filepath.Base(name), args, err, out)
		}
		return time.Since(began), err
	}
	if _, err := inSpace(bin, "init"); err != nil {
		return nil, err
	}
	var ours, nothing []float64
	for round := range b.rounds {
		for i := range commandsPerRound {
			path := fmt.Sprintf("app/part_%d/file_%d.rb", round, i)
			took, err := inSpace(bin, "lock", "acquire", "--holder", "bench", "--write", path)
			if err != nil {
				return nil, err
			}
			ours = append(ours, float64(took))
			if took, err = inSpace("true"); err != nil {
				return nil, err
			}
			nothing = append(nothing, float64(took))
		}
	}
	return []row{row{
		What: "A whole `lockkeeper lock acquire`", Ours: ns(median(ours)), Peer: ns(median(nothing)) + " (`true`)",
		How: "From the start of the process to its exit, with one durable transaction on SQLite; for comparison, a program that does nothing.",
	}.atMost(median(ours)/1e6, 15, "%.1f ms")}, nil
}

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/project"
	"lockkeeper/internal/session"
	"lockkeeper/lock"
)

// heldByOthers is the number of grants of other holders during a hook call, one file each.
const heldByOthers = 10_000

const hooksPerRound = 40

// pythonHook is what a developer would write by hand: it reads, checks and replaces a
// lock file of JSON under a lock of the operating system.
const pythonHook = `import fcntl, json, os, sys
call = json.load(sys.stdin)
path, me = call["tool_input"]["file_path"], call["session_id"]
with open("locks.lock", "w") as door:
    fcntl.flock(door, fcntl.LOCK_EX)
    with open("locks.json") as f:
        locks = json.load(f)
    if locks.get(path, me) != me:
        print("held by", locks[path], file=sys.stderr)
        sys.exit(2)
    if path not in locks:
        locks[path] = me
        with open("locks.json.new", "w") as f:
            json.dump(locks, f)
            f.flush()
            os.fsync(f.fileno())
        os.rename("locks.json.new", "locks.json")
`

// A crowded codebase has many files that other holders hold.
type crowded struct {
	dir, home string
	paths     []string
}

func (c crowded) settings() project.Settings {
	return project.Settings{Dir: c.dir, Env: func(name string) (string, bool) { return c.home, name == "HOME" }}
}

func newCrowded(b *bench, dir string) (crowded, *project.Project) {
	c := crowded{dir: filepath.Join(dir, "space"), home: dir}
	for i := range heldByOthers {
		c.paths = append(c.paths, fmt.Sprintf("app/part_%02d/file_%04d.rb", i%100, i))
		writeFile(filepath.Join(c.dir, c.paths[i]), []byte("x\n"))
	}
	get(project.Init(b.ctx, c.settings(), project.InitOptions{}))
	p := get(project.Open(b.ctx, c.settings()))
	check(p.Locks.Update(b.ctx, func(act *lock.Tx) error {
		for i, path := range c.paths {
			_, _, err := act.Try(lockkeeper.Request{Holder: fmt.Sprintf("other-%d", i), Policy: session.Policy, TTL: 6 * time.Hour, Locks: writes(path)})
			if err != nil {
				return err
			}
		}
		return nil
	}))
	return c, p
}

// hookCall measures the whole process, for a file that is new to the session and for a file
// that it has.
func hookCall(b *bench) []row {
	python, err := exec.LookPath("python3")
	if err != nil {
		check(skipped("there is no python3"))
	}
	bin := b.build("lockkeeper-hook", b.dir)
	c, p := newCrowded(b, filepath.Join(b.dir, "hooks"))
	check(p.Close())
	locks := map[string]string{}
	for i, path := range c.paths {
		locks[filepath.Join(c.dir, path)] = fmt.Sprint("other-", i)
	}
	text := get(json.Marshal(locks))
	script := filepath.Join(c.home, "hook.py")
	check(errors.Join(os.WriteFile(filepath.Join(c.home, "locks.json"), text, 0o644), os.WriteFile(script, []byte(pythonHook), 0o644)))
	ask := func(dir, file string, argv ...string) float64 {
		call := get(json.Marshal(map[string]any{"session_id": "bench", "cwd": c.dir, "hook_event_name": "PreToolUse", "tool_name": "Edit", "tool_use_id": "t",
			"tool_input": map[string]string{"file_path": filepath.Join(c.dir, file)}}))
		cmd := exec.CommandContext(b.ctx, argv[0], argv[1:]...)
		cmd.Dir, cmd.Env, cmd.Stdin = dir, append(os.Environ(), "HOME="+c.home, "XDG_STATE_HOME=", "LOCKKEEPER_STORE="), bytes.NewReader(call)
		_, took := timed(cmd)
		return float64(took)
	}
	var fresh, again, freshPeer, againPeer []float64
	for round := range b.rounds {
		for i := range hooksPerRound {
			file := fmt.Sprintf("mine/part_%d/file_%d.rb", round, i)
			for _, into := range [][2]*[]float64{{&fresh, &freshPeer}, {&again, &againPeer}} {
				*into[0] = append(*into[0], ask(c.dir, file, bin, "claude-code"))
				*into[1] = append(*into[1], ask(c.home, file, python, script))
			}
		}
	}
	how := "`lockkeeper-hook claude-code` runs before an Edit, while others hold 10,000 files by a grant each. The time is from the start of the process to its exit. The peer is a Python script that reads a JSON lock file with as many entries."
	both := slices.Concat(fresh, again)
	return []row{
		row{What: "Hook: a file that is new to the session, median", Ours: ns(median(fresh)), Peer: ns(median(freshPeer)) + " (Python)", How: how}.atMost(median(fresh)/1e6, 8, "%.1f ms"),
		row{What: "Hook: a file that it has, median", Ours: ns(median(again)), Peer: ns(median(againPeer)) + " (Python)", How: "The same call again, for a file that the session has claimed."}.atMost(median(again)/1e6, 8, "%.1f ms"),
		row{What: "Hook: 99 of 100 calls", Ours: ns(percentile(both, 99)), Peer: ns(percentile(slices.Concat(freshPeer, againPeer), 99)) + " (Python)", How: "The time within which 99 of 100 calls of both kinds end."}.atMost(percentile(both, 99)/1e6, 60, "%.1f ms"),
	}
}

func percentile(list []float64, p int) float64 {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[min(len(sorted)-1, len(sorted)*p/100)]
}

// hookCompare measures the check after a command when no file of another session has changed.
func hookCompare(b *bench) []row {
	c, p := newCrowded(b, filepath.Join(b.dir, "compared"))
	b.cleanup(p.Close)
	s := get(session.Open(p).Enter(b.ctx, session.Caller{ID: "bench", Agent: "bench"}))
	b.cleanup(s.Close)
	compare := times(func() {
		check(s.Begin("t", session.Call{Command: "true"}))
		if found := get(s.Compare(b.ctx, s.End("t", false), false)); len(found) > 0 {
			check(fmt.Errorf("found %d changes", len(found)))
		}
	})
	stat := times(func() {
		for _, path := range c.paths {
			get(os.Lstat(filepath.Join(c.dir, path)))
		}
	})
	out := b.race(100*time.Millisecond, compare, stat)
	ratio := median(ratios(out[0], out[1]))
	return []row{row{What: "Hook: comparison after a command, to stat of 10,000 files that others hold", Ours: ns(median(out[0])), Peer: ns(median(out[1])),
		How: "The list of files that others hold is updated from the events, and each file is checked. The peer calls os.Lstat for each file."}.atMost(ratio, 2, "%.2f×")}
}

const commandsPerRound = 20

// build builds the programs into a directory with the flags of releases, and returns the path of one.
func (b *bench) build(name, dir string) string {
	build := exec.CommandContext(b.ctx, "make", "--silent", "build", "BIN="+get(filepath.Abs(dir)))
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		check(skipped(fmt.Sprintf("the command does not build: %.300s", out)))
	}
	return filepath.Join(dir, name)
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
		How: "The time is from the start of the process to its exit, with one durable transaction on SQLite. The peer is a program that does nothing.",
	}.atMost(median(ours)/1e6, 15, "%.1f ms")}
}

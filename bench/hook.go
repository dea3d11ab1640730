package main

import (
	"context"
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

// pythonHook is what one would write oneself: a lock file of JSON, read, checked and
// replaced under a lock of the operating system.
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

// crowded is a codebase in which others hold much.
type crowded struct {
	dir, home string
	paths     []string
}

func (c crowded) lookup(name string) (string, bool) {
	if name == "HOME" {
		return c.home, true
	}
	return "", false
}

// open opens it as a command does.
func (c crowded) open(ctx context.Context) (*project.Project, error) {
	return project.Open(ctx, project.Settings{Dir: c.dir, Env: c.lookup})
}

// newCrowded makes one.
func newCrowded(ctx context.Context, dir string) (c crowded, err error) {
	c = crowded{dir: filepath.Join(dir, "space"), home: dir}
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return c, err
	}
	if _, err := project.Init(ctx, project.Settings{Dir: c.dir, Env: c.lookup}, project.InitOptions{}); err != nil {
		return c, err
	}
	a, err := c.open(ctx)
	if err != nil {
		return c, err
	}
	for i := range heldByOthers {
		c.paths = append(c.paths, fmt.Sprintf("app/part_%02d/file_%04d.rb", i%100, i))
		file := filepath.Join(c.dir, c.paths[i])
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte("x\n"), 0o644)); err != nil {
			return c, errors.Join(err, a.Close())
		}
	}
	err = a.Locks.Update(ctx, func(act *lock.Tx) error {
		for i, path := range c.paths {
			_, _, err := act.Try(lockkeeper.Request{Holder: fmt.Sprintf("other-%d", i), Policy: session.Policy, TTL: 6 * time.Hour,
				Locks: []lockkeeper.Lock{{Target: lockkeeper.Target{Path: path, Kind: lockkeeper.File}, Mode: lockkeeper.Write}}})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return c, errors.Join(err, a.Close())
}

// hookCall measures the whole process, for a file that is new to the session and for one
// that it has.
func hookCall(ctx context.Context, b *bench) ([]row, error) {
	python, err := exec.LookPath("python3")
	if err != nil {
		return nil, skipped("there is no python3")
	}
	bin := filepath.Join(b.dir, "lockkeeper-hook")
	build := exec.CommandContext(ctx, "go", "build", "-o", bin, "./cmd/lockkeeper-hook")
	build.Dir, build.Env = "..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, skipped(fmt.Sprintf("the command does not build: %.300s", out))
	}
	c, err := newCrowded(ctx, filepath.Join(b.dir, "hooks"))
	if err != nil {
		return nil, err
	}
	locks := map[string]string{}
	for i, path := range c.paths {
		locks[filepath.Join(c.dir, path)] = fmt.Sprint("other-", i)
	}
	text, err := json.Marshal(locks)
	if err != nil {
		return nil, err
	}
	script := filepath.Join(c.home, "hook.py")
	if err := errors.Join(os.WriteFile(filepath.Join(c.home, "locks.json"), text, 0o644), os.WriteFile(script, []byte(pythonHook), 0o644)); err != nil {
		return nil, err
	}
	ask := func(dir, file string, argv ...string) (float64, error) {
		call, err := json.Marshal(map[string]any{"session_id": "bench", "cwd": c.dir, "hook_event_name": "PreToolUse", "tool_name": "Edit", "tool_use_id": "t",
			"tool_input": map[string]string{"file_path": filepath.Join(c.dir, file)}})
		if err != nil {
			return 0, err
		}
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Dir, cmd.Env, cmd.Stdin = dir, append(os.Environ(), "HOME="+c.home, "XDG_STATE_HOME=", "LOCKKEEPER_STORE="), strings.NewReader(string(call))
		began := time.Now()
		out, err := cmd.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%v: %w: %s", argv, err, out)
		}
		return float64(time.Since(began)), err
	}
	ours := func(file string) (float64, error) { return ask(c.dir, file, bin, "claude-code") }
	theirs := func(file string) (float64, error) { return ask(c.home, file, python, script) }
	var fresh, again, freshPeer, againPeer []float64
	for round := range b.rounds {
		for i := range hooksPerRound {
			file := fmt.Sprintf("mine/part_%d/file_%d.rb", round, i)
			for _, m := range []struct {
				ask  func(string) (float64, error)
				into *[]float64
			}{{ours, &fresh}, {theirs, &freshPeer}, {ours, &again}, {theirs, &againPeer}} {
				took, err := m.ask(file)
				if err != nil {
					return nil, err
				}
				*m.into = append(*m.into, took)
			}
		}
	}
	how := "`lockkeeper-hook claude-code` from the start of the process to its exit, before an Edit, while others hold 10,000 files by a grant each; the peer is a Python script over a lock file of JSON with as many entries."
	both := slices.Concat(fresh, again)
	return []row{
		row{What: "Hook: a file that is new to the session, median", Ours: ns(median(fresh)), Peer: ns(median(freshPeer)) + " (Python)", How: how}.atMost(median(fresh)/1e6, 20, "%.1f ms"),
		row{What: "Hook: a file that it has, median", Ours: ns(median(again)), Peer: ns(median(againPeer)) + " (Python)", How: "The same, asked again."}.atMost(median(again)/1e6, 20, "%.1f ms"),
		row{What: "Hook: 99 of 100 calls", Ours: ns(percentile(both, 99)), Peer: ns(percentile(slices.Concat(freshPeer, againPeer), 99)) + " (Python)", How: "Of both kinds of call together."}.atMost(percentile(both, 99)/1e6, 60, "%.1f ms"),
	}, nil
}

func percentile(list []float64, p int) float64 {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[min(len(sorted)-1, len(sorted)*p/100)]
}

// hookCompare measures the check after a command when no file of another session has changed.
func hookCompare(ctx context.Context, b *bench) (_ []row, err error) {
	c, err := newCrowded(ctx, filepath.Join(b.dir, "compared"))
	if err != nil {
		return nil, err
	}
	a, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	s, err := session.Open(a).Enter(ctx, session.Caller{ID: "bench", Agent: "bench"})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	compare := func(n int) error {
		for range n {
			if err := s.Begin("t", session.Call{Command: "true"}); err != nil {
				return err
			}
			found, err := s.Compare(ctx, s.End("t", false), false)
			if err != nil || len(found) > 0 {
				return fmt.Errorf("found %d, %w", len(found), err)
			}
		}
		return nil
	}
	stat := func(n int) error {
		for range n {
			for _, path := range c.paths {
				if _, err := os.Lstat(filepath.Join(c.dir, path)); err != nil {
					return err
				}
			}
		}
		return nil
	}
	out, err := b.race(100*time.Millisecond, compare, stat)
	if err != nil {
		return nil, err
	}
	ratio := median(ratios(out[0], out[1]))
	return []row{row{What: "Hook: comparison after a command, to stat of 10,000 files that others hold", Ours: ns(median(out[0])), Peer: ns(median(out[1])),
		How: "The list of files that others hold is updated from the events, and each file is checked; the peer calls os.Lstat for each of them."}.atMost(ratio, 2, "%.2f×")}, nil
}

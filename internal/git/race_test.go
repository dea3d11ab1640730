package git

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"lockkeeper/internal/git/gittest"
)

// torture returns the factor by which random tests run longer than usual.
func torture() int {
	n, err := strconv.Atoi(os.Getenv("LOCKKEEPER_TORTURE"))
	if err != nil {
		return 1
	}
	return max(1, n)
}

// persist repeats a command while another git holds the lock, as a person would.
func persist(ctx context.Context, dir string, args ...string) error {
	for {
		out, err := try(dir, args...)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		if !strings.Contains(out, "lock") {
			return fmt.Errorf("git %q: %s", args, out)
		}
	}
}

// People stage, commit and read in other processes. Every batch is still one commit of exactly
// its files, people's commits have none of them, and no staged change is lost.
func TestCommitWhilePeopleUseGit(t *testing.T) {
	root := newTree(t, map[string]string{"staged": "1", "theirs/0": "1", "ours/gone": "1"})
	plant(t, root, map[string]string{"staged": "2"})
	person(t, root, "add", "staged")
	ctx, stop := context.WithCancel(t.Context())
	var people sync.WaitGroup
	failed := make(chan error, 3)
	for _, acts := range [][][]string{
		{{"add", "theirs/0"}, {"commit", "-q", "--allow-empty", "-m", "theirs", "--", "theirs/0"}},
		{{"status", "--porcelain"}, {"update-index", "--refresh", "-q", "--unmerged"}},
	} {
		people.Go(func() {
			for n := 2; ctx.Err() == nil; n++ {
				if acts[0][0] == "add" {
					if err := os.WriteFile(filepath.Join(root, "theirs/0"), []byte(strconv.Itoa(n)), 0o644); err != nil {
						failed <- err
						return
					}
				}
				for _, args := range acts {
					if err := persist(ctx, root, args...); err != nil && args[0] != "update-index" {
						failed <- err
						return
					}
				}
			}
		})
	}
	r := open(t, root)
	hashes := map[string]string{}
	batches := 25 * torture()
	for n := range batches {
		id := fmt.Sprint("b", n)
		fresh := "ours/" + id
		plant(t, root, map[string]string{fresh: "1", "ours/.same": id})
		must(t, os.Rename(filepath.Join(root, "ours/.same"), filepath.Join(root, "ours/same"))) // a new inode, like a landing
		done, err := r.Commit(t.Context(), Commit{Paths: []string{fresh, "ours/same"}, Subject: id, Trailers: []Trailer{{"Batch", id}}})
		if err != nil {
			t.Error(err)
			break
		}
		hashes[id] = done.Hash
	}
	stop()
	people.Wait()
	must(t, r.RepairIndex(t.Context()))
	close(failed)
	for err := range failed {
		t.Error(err)
	}
	theirs := 0
	for _, hash := range strings.Fields(person(t, root, "rev-list", "--first-parent", "HEAD")) {
		subject := strings.TrimSpace(person(t, root, "log", "-1", "--format=%s", hash))
		changed := inCommit(t, root, hash)
		switch {
		case subject == "first":
		case subject == "theirs":
			theirs++
			if len(changed) > 1 || len(changed) == 1 && changed[0] != "M theirs/0" {
				t.Errorf("theirs has %q", changed)
			}
		default:
			equal(t, subject, hash, hashes[subject])
			want := []string{"A ours/" + subject, "M ours/same"}
			if subject == "b0" {
				want[1] = "A ours/same"
			}
			equal(t, subject, changed, want)
			delete(hashes, subject)
		}
	}
	equal(t, "batches that are in no history", len(hashes), 0)
	t.Logf("%d batches, %d commits of people", batches, theirs)
	if s := status(t, root); !strings.Contains(s, "M  staged\n") || strings.Contains(s, "ours/") {
		t.Errorf("status:\n%s", s)
	}
}

// While a person repeatedly rebases with conflicts, batches wait. If a commit ends up in the
// middle of a rebase, or a rebase drops it, that is detected.
func TestLandingWhileAPersonRebases(t *testing.T) {
	root := newFork(t)
	r := open(t, root)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	draw := rand.New(rand.NewPCG(seed, 0))
	ctx, stop := context.WithCancel(t.Context())
	var people sync.WaitGroup
	failed := make(chan error, 1)
	rebases := 0
	people.Go(func() {
		for ctx.Err() == nil {
			if _, err := try(root, "rebase", "side"); err == nil {
				failed <- errors.New("the rebase had no conflict")
				return
			}
			if _, err := os.Lstat(filepath.Join(root, ".git/rebase-merge")); err != nil {
				continue // the rebase could not begin because a commit is in progress
			}
			rebases++
			time.Sleep(time.Duration(draw.IntN(30)) * time.Millisecond) // the person pauses
			if err := persist(context.WithoutCancel(ctx), root, "rebase", "--abort"); err != nil {
				failed <- err
				return
			}
			time.Sleep(time.Duration(draw.IntN(100)) * time.Millisecond)
		}
	})
	hashes := map[string]string{}
	var paused, dropped int
	for n := range 10 * torture() {
		id := fmt.Sprint("b", n)
		for {
			must(t, r.AwaitIdle(t.Context(), Want{Branch: "main"}))
			plant(t, root, map[string]string{"ours/" + id: "1"})
			done, err := r.Commit(t.Context(), Commit{Paths: []string{"ours/" + id}, Subject: id, Trailers: []Trailer{{"Batch", id}}})
			var held *PausedError
			if errors.As(err, &held) {
				paused++
				continue
			}
			must(t, err)
			if hashes[id] = done.Hash; done.Branch == "main" {
				break
			}
			// A rebase began between the check and the commit. The commit is on the wrong branch,
			// which is detected, and the batch is committed again.
			t.Logf("%s went to %q", id, done.Branch)
		}
	}
	stop()
	people.Wait()
	close(failed)
	for err := range failed {
		t.Error(err)
	}
	must(t, r.AwaitIdle(t.Context(), Want{Branch: "main"}))
	now, err := r.State(t.Context())
	must(t, err)
	for id, hash := range hashes {
		found, err := r.Find(t.Context(), "Batch", id)
		must(t, err)
		if found != "" {
			continue
		}
		// A rebase that began before the commit was aborted.
		dropped++
		if moved := between(t, root, hash, now.Head); !slices.Contains(moved, "ours/"+id) {
			t.Errorf("%s is lost without an error: %q", id, moved)
		}
	}
	t.Logf("%d rebases, %d batches turned away, %d dropped", rebases, paused, dropped)
}

// A process killed during a commit leaves git's lock. The lock is reported, and only a person
// removes it. Then the same batch is committed.
func TestCommitAfterAKill(t *testing.T) {
	root := newTree(t, map[string]string{"a": "1"})
	r := open(t, root)
	plant(t, root, map[string]string{"new": "1"})
	started := filepath.Join(t.TempDir(), "started")
	must(t, syscall.Mkfifo(started, 0o600))
	hook(t, r, "pre-commit", "echo $PPID $$ > '"+started+"'; exec sleep 60")
	child := exec.Command(os.Args[0], childArg, root, "new")
	child.Env = gittest.Env()
	must(t, child.Start())
	text, err := os.ReadFile(started) // git holds its lock now
	must(t, err)
	must(t, child.Process.Kill())
	for _, word := range strings.Fields(string(text)) { // git and the hook
		pid, err := strconv.Atoi(word)
		must(t, err)
		must(t, syscall.Kill(pid, syscall.SIGKILL))
	}
	child.Wait()
	hook(t, r, "pre-commit", "exit 0")

	s, err := r.State(t.Context())
	must(t, err)
	equal(t, "operation", s.Operation, IndexLock)
	r.patience = 50 * time.Millisecond
	c := Commit{Paths: []string{"new"}, Subject: "x", Trailers: []Trailer{{"Batch", "b1"}}}
	_, err = r.Commit(t.Context(), c)
	var held *PausedError
	if !errors.As(err, &held) || !strings.Contains(err.Error(), held.File+": remove it") {
		t.Fatal(err)
	}
	must(t, os.Remove(held.File)) // as a person would
	found, err := r.Find(t.Context(), "Batch", "b1")
	must(t, err)
	equal(t, "found", found, "")
	done := commit(t, r, c)
	equal(t, "commit", inCommit(t, root, done.Hash), []string{"A new"})
	equal(t, "status", status(t, root), "")
}

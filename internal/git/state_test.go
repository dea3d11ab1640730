package git

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/internal/git/gittest"
)

// newFork creates a work tree whose branches main and side changed the same file. Each branch also
// changed a file of its own.
func newFork(t *testing.T) string {
	t.Helper()
	root := newTree(t, map[string]string{"both": "1\n", "free": "1\n"})
	person(t, root, "branch", "side")
	for _, text := range []string{"2\n", "3\n"} {
		plant(t, root, map[string]string{"both": "main " + text})
		person(t, root, "commit", "-q", "-a", "-m", "main "+text)
	}
	person(t, root, "switch", "-q", "side")
	plant(t, root, map[string]string{"both": "side\n", "app/side": "1\n"})
	person(t, root, "add", "-A")
	person(t, root, "commit", "-q", "-m", "side")
	person(t, root, "switch", "-q", "main")
	return root
}

// collide runs a git command that ends in a conflict.
func collide(t *testing.T, root string, args ...string) {
	t.Helper()
	if out, err := try(root, args...); err == nil {
		t.Fatalf("git %q had no conflict: %s", args, out)
	}
}

// State returns the name of every operation that a person can have in progress.
func TestStateNamesWhatIsInProgress(t *testing.T) {
	for name, scene := range map[string]struct {
		begin func(root string)
		want  State // the expected state, without its commit
		next  string
	}{
		"nothing": {func(string) {}, State{Branch: "main"}, ""},
		"packed":  {func(root string) { person(t, root, "pack-refs", "--all") }, State{Branch: "main"}, ""},
		"detached": {func(root string) { person(t, root, "checkout", "-q", "--detach", "side") },
			State{}, ""},
		"branch of a branch": {func(root string) { person(t, root, "switch", "-q", "-c", "deep/er.x") }, State{Branch: "deep/er.x"}, ""},
		"rebase":             {func(root string) { collide(t, root, "rebase", "side") }, State{Operation: "rebase"}, "git rebase --continue"},
		"rebase --apply":     {func(root string) { collide(t, root, "rebase", "--apply", "side") }, State{Operation: "rebase"}, "git rebase --continue"},
		"merge":              {func(root string) { collide(t, root, "merge", "side") }, State{Branch: "main", Operation: "merge"}, "git merge --continue"},
		"cherry-pick":        {func(root string) { collide(t, root, "cherry-pick", "side") }, State{Branch: "main", Operation: "cherry-pick"}, "git cherry-pick --continue"},
		"between two picks": {func(root string) {
			collide(t, root, "cherry-pick", "side", "side~1")
			person(t, root, "reset", "-q", "--hard")
		}, State{Branch: "main", Operation: "cherry-pick or revert"}, "--continue or --abort"},
		"revert": {func(root string) { collide(t, root, "revert", "--no-edit", "HEAD~1") }, State{Branch: "main", Operation: "revert"}, "git revert --continue"},
		"bisect": {func(root string) { person(t, root, "bisect", "start", "HEAD", "HEAD~2") }, State{Operation: "bisect"}, "git bisect reset"},
		"am": {func(root string) {
			person(t, root, "format-patch", "-q", "-1", "-o", ".git/patches", "side")
			patches, err := filepath.Glob(filepath.Join(root, ".git/patches/*"))
			must(t, err)
			collide(t, root, "am", patches[0])
		}, State{Branch: "main", Operation: "am"}, "git am --continue"},
		"index.lock": {func(root string) { plant(t, root, map[string]string{".git/index.lock": ""}) }, State{Branch: "main", Operation: IndexLock}, "index.lock"},
	} {
		t.Run(name, func(t *testing.T) {
			root := newFork(t)
			scene.begin(root)
			r := open(t, root)
			s, err := r.State(t.Context())
			must(t, err)
			equal(t, "HEAD", s.Head, strings.TrimSpace(person(t, root, "rev-parse", "HEAD")))
			s.Head = ""
			equal(t, "state", s, scene.want)
			if scene.next == "" {
				must(t, r.AwaitIdle(t.Context(), Want{}))
				return
			}
			if s.Operation != IndexLock {
				_, err = r.Commit(t.Context(), Commit{Paths: []string{"free"}, Subject: "x"})
				var paused *PausedError
				if !errors.As(err, &paused) || lockkeeper.CodeOf(err) != lockkeeper.CodeBlocked || !strings.Contains(err.Error(), scene.next) {
					t.Errorf("commit: %v", err)
				}
				if err := r.Switch(t.Context(), "elsewhere"); !errors.As(err, &paused) {
					t.Errorf("switch: %v", err)
				}
			}
		})
	}
}

// hung is how long a test waits for a state before it fails. It is only a limit for hangs.
const hung = 5 * time.Minute

// A waiting is an AwaitIdle in progress.
type waiting struct {
	told chan *PausedError
	done chan error
}

func settle(ctx context.Context, r *Repo, branch string) waiting {
	w := waiting{told: make(chan *PausedError, 100), done: make(chan error, 1)}
	go func() { w.done <- r.AwaitIdle(ctx, Want{Branch: branch, Tell: func(e *PausedError) { w.told <- e }}) }()
	return w
}

func (w waiting) reason(t *testing.T) *PausedError {
	t.Helper()
	select {
	case e := <-w.told:
		return e
	case err := <-w.done:
		t.Fatalf("settled: %v", err)
	case <-time.After(hung):
		t.Fatal("nothing was told")
	}
	return nil
}

func (w waiting) end(t *testing.T) {
	t.Helper()
	select {
	case err := <-w.done:
		must(t, err)
	case <-time.After(hung):
		t.Fatal("never settled")
	}
	if len(w.told) > 0 {
		t.Errorf("also reported: %v", <-w.told)
	}
}

// A person's rebase with conflicts pauses landing until it is over. Each reason is reported once.
// The files that the rebase changed are listed.
func TestAwaitIdleWaitsForARebase(t *testing.T) {
	root := newFork(t)
	r := open(t, root)
	before, err := r.State(t.Context())
	must(t, err)
	collide(t, root, "rebase", "side")
	w := settle(t.Context(), r, "main")
	equal(t, "told", w.reason(t).Operation, "rebase")
	for i := range 20 { // steps of the rebase are not reported again
		plant(t, root, map[string]string{".git/rebase-merge/x": strings.Repeat("x", i)})
	}
	person(t, root, "checkout", "--theirs", "both")
	person(t, root, "add", "both")
	person(t, root, "-c", "core.editor=true", "rebase", "--continue")
	w.end(t)
	after, err := r.State(t.Context())
	must(t, err)
	equal(t, "branch", after.Branch, "main")
	equal(t, "moved", between(t, root, before.Head, after.Head), []string{"app/side"})
}

// A checkout of another branch also pauses landing, until HEAD is back.
func TestAwaitIdleWaitsForTheBranch(t *testing.T) {
	root := newFork(t)
	r := open(t, root)
	must(t, r.AwaitIdle(t.Context(), Want{Branch: "main"}))
	person(t, root, "switch", "-q", "side")
	w := settle(t.Context(), r, "main")
	first := w.reason(t)
	equal(t, "told", first.Branch, "side")
	if !strings.Contains(first.Error(), "git switch main") {
		t.Error(first)
	}
	person(t, root, "switch", "-q", "--detach")
	equal(t, "told", w.reason(t).Branch, "")
	person(t, root, "switch", "-q", "main")
	w.end(t)

	person(t, root, "switch", "-q", "--detach")
	w = settle(t.Context(), r, "main")
	if told := w.reason(t); !strings.Contains(told.Error(), "is on no branch") {
		t.Error(told)
	}
	person(t, root, "switch", "-q", "main")
	w.end(t)

	person(t, root, "switch", "-q", "side")
	ctx, cancel := context.WithCancelCause(t.Context())
	w = settle(ctx, r, "main")
	w.reason(t)
	over := errors.New("over")
	cancel(over)
	if err := <-w.done; !errors.Is(err, over) {
		t.Error(err)
	}
}

// A lock that stays is reported and not removed. A short one is not reported.
func TestAwaitIdleWaitsForALock(t *testing.T) {
	root := newTree(t, map[string]string{"a": "1"})
	r := open(t, root)
	r.patience = 50 * time.Millisecond
	lock := filepath.Join(root, ".git/index.lock")
	must(t, os.WriteFile(lock, nil, 0o644))
	w := settle(t.Context(), r, "")
	told := w.reason(t)
	equal(t, "file", told.File, lock)
	if !strings.Contains(told.Error(), lock+": remove it") {
		t.Error(told)
	}
	must(t, os.Remove(lock))
	w.end(t)
	r.patience = hung
	must(t, os.WriteFile(lock, nil, 0o644))
	w = settle(t.Context(), r, "")
	must(t, os.Remove(lock))
	w.end(t)
}

func TestSwitch(t *testing.T) {
	root := newFork(t)
	r := open(t, root)
	plant(t, root, map[string]string{"free": "edited\n", "staged": "1"})
	person(t, root, "add", "staged")
	before := status(t, root)
	for _, branch := range []string{"run/1", "main", "side", "run/1", "run/1"} {
		must(t, r.Switch(t.Context(), branch))
		s, err := r.State(t.Context())
		must(t, err)
		equal(t, "branch", s.Branch, branch)
		equal(t, "status", status(t, root), before)
	}
	plant(t, root, map[string]string{"both": "edited\n"})
	err := r.Switch(t.Context(), "side")
	if lockkeeper.CodeOf(err) != lockkeeper.CodeRefused || !strings.Contains(err.Error(), "both") || !strings.Contains(err.Error(), "would be overwritten") {
		t.Error(err)
	}
	equal(t, "status", status(t, root), " M both\n"+before)
	person(t, root, "worktree", "add", "-q", "-b", "taken", filepath.Join(t.TempDir(), "other"))
	if err := r.Switch(t.Context(), "taken"); lockkeeper.CodeOf(err) != lockkeeper.CodeRefused {
		t.Error(err)
	}
	for _, wrong := range []string{"", "-x", "--detach", "HEAD", "a..b", "a b", "x.lock", "@{-1}", "a\nb", "refs/heads/", ":x"} {
		if err := r.Switch(t.Context(), wrong); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}

func BenchmarkState(b *testing.B) {
	root := b.TempDir()
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"commit", "-q", "--allow-empty", "-m", "x"}} {
		if out, err := try(root, args...); err != nil {
			b.Fatal(out)
		}
	}
	r, err := Open(b.Context(), root, gittest.Env())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := r.State(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

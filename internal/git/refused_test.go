package git

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/internal/git/gittest"
)

// A hook that says no is quoted, and leaves everything as it was. shows: CF-15
func TestCommitThatAHookRefuses(t *testing.T) {
	root := newTree(t, map[string]string{"a": "1\n", "theirs": "1\n"})
	plant(t, root, map[string]string{"a": "2\n", "new": "2\n", "theirs": "2\n"})
	person(t, root, "add", "theirs")
	r := open(t, root)
	head := person(t, root, "rev-parse", "HEAD")
	before := withoutTimes(workTreeState(t, root))
	c := Commit{Paths: []string{"a", "new"}, Subject: "x"}
	for _, name := range []string{"pre-commit", "prepare-commit-msg", "commit-msg"} {
		hook(t, r, name, `printf 'no \033[31mtabs\033[0m allowed\n'; exit 3`)
		_, err := r.Commit(t.Context(), c)
		var refused *lockkeeper.RefusedError
		if !errors.As(err, &refused) || !strings.Contains(refused.Reason, "a hook of the repository refused: no [31mtabs[0m allowed") {
			t.Errorf("%s: %v", name, err)
		}
		equal(t, name, withoutTimes(workTreeState(t, root)), before)
		must(t, os.Remove(filepath.Join(root, ".git/hooks", name)))
	}
	equal(t, "HEAD", person(t, root, "rev-parse", "HEAD"), head)

	// Hooks see exactly the committed files, and their own patterns work.
	hook(t, r, "pre-commit", `test "$(git diff --cached --name-only | tr '\n' ' ')" = "a new " && git diff --cached --name-only -- 'n*' | grep -qx new`)
	hook(t, r, "post-commit", `sleep 1 & exit 1`) // too late to refuse
	hook(t, r, "commit-msg", `printf '\nChange-Id: I1\n' >> "$1"`)
	c.Trailers = []Trailer{{"Lockkeeper-Batch", "b1"}}
	done := commit(t, r, c)
	equal(t, "commit", inCommit(t, root, done.Hash), []string{"A new", "M a"})
	found, err := r.Find(t.Context(), "Lockkeeper-Batch", "b1")
	must(t, err)
	equal(t, "found", found, done.Hash)
}

// A commit needs an author.
func TestCommitWithoutAnIdentity(t *testing.T) {
	root := newTree(t, map[string]string{"a": "1"})
	plant(t, root, map[string]string{"new": "2"})
	before := withoutTimes(workTreeState(t, root))
	env := slices.DeleteFunc(gittest.Env(), func(entry string) bool {
		return strings.HasPrefix(entry, "GIT_AUTHOR") || strings.HasPrefix(entry, "GIT_COMMITTER") || strings.HasPrefix(entry, "EMAIL=")
	})
	person(t, root, "config", "user.useConfigOnly", "true")
	r, err := Open(t.Context(), root, env)
	must(t, err)
	_, err = r.Commit(t.Context(), Commit{Paths: []string{"new"}, Subject: "x"})
	if lockkeeper.CodeOf(err) != lockkeeper.CodeInput || !strings.Contains(err.Error(), "git config user.name") {
		t.Error(err)
	}
	equal(t, "index", withoutTimes(workTreeState(t, root)), before)
}

// An error of the signer is reported. A signer that waits for a person is stopped, and no lock is
// left.
func TestCommitThatCannotBeSigned(t *testing.T) {
	root := newTree(t, map[string]string{"a": "1"})
	plant(t, root, map[string]string{"a": "2", "new": "2"})
	before := withoutTimes(workTreeState(t, root))
	signer := filepath.Join(t.TempDir(), "signer")
	person(t, root, "config", "commit.gpgsign", "true")
	person(t, root, "config", "gpg.program", signer)
	r := open(t, root)
	c := Commit{Paths: []string{"a", "new"}, Subject: "x"}
	must(t, os.WriteFile(signer, []byte("#!/bin/sh\necho no pinentry >&2\nexit 2\n"), 0o755))
	if _, err := r.Commit(t.Context(), c); lockkeeper.CodeOf(err) != lockkeeper.CodeRefused || !strings.Contains(err.Error(), "commit.gpgsign") {
		t.Error(err)
	}
	equal(t, "index", withoutTimes(workTreeState(t, root)), before)

	started := filepath.Join(t.TempDir(), "started")
	must(t, syscall.Mkfifo(started, 0o600))
	must(t, os.WriteFile(signer, []byte("#!/bin/sh\necho $$ > '"+started+"'\nexec sleep 60\n"), 0o755))
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	signing := make(chan string, 1)
	go func() {
		text, _ := os.ReadFile(started) // returns when the signer runs
		signing <- strings.TrimSpace(string(text))
		cancel(enough)
	}()
	if _, err := r.Commit(ctx, c); !errors.Is(err, enough) {
		t.Error(err)
	}
	pid, err := strconv.Atoi(<-signing)
	must(t, err)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH { // git may leave it running
		t.Error(err)
	} else {
		t.Logf("signer %d: %v", pid, err)
	}
	equal(t, "index", withoutTimes(workTreeState(t, root)), before)
	if _, err := os.Lstat(filepath.Join(root, ".git/index.lock")); err == nil {
		t.Error("a lock stayed")
	}
}

// Commit waits for the lock of another git. A lock that stays is reported and never removed.
func TestCommitWaitsForALock(t *testing.T) {
	root := newTree(t, map[string]string{"a": "1"})
	r := open(t, root)
	lock := filepath.Join(root, ".git/index.lock")
	plant(t, root, map[string]string{"a": "2", "new": "2"})
	must(t, os.WriteFile(lock, nil, 0o644))
	r.patience = hung
	freed := make(chan error, 1)
	go func() {
		time.Sleep(100 * time.Millisecond) // another git is slow
		freed <- os.Remove(lock)
	}()
	done := commit(t, r, Commit{Paths: []string{"a", "new"}})
	must(t, <-freed)
	equal(t, "commit", inCommit(t, root, done.Hash), []string{"A new", "M a"})

	plant(t, root, map[string]string{"a": "3", "newer": "3"})
	must(t, os.WriteFile(lock, []byte("foreign"), 0o644))
	r.patience = 50 * time.Millisecond
	for _, paths := range [][]string{{"a"}, {"newer"}} {
		_, err := r.Commit(t.Context(), Commit{Paths: paths, Subject: "x"})
		var paused *PausedError
		if !errors.As(err, &paused) || paused.Operation != IndexLock || paused.File != lock || time.Since(paused.Touched) > time.Hour {
			t.Errorf("%q: %v", paths, err)
		}
	}
	content, err := os.ReadFile(lock)
	must(t, err)
	equal(t, "lock", string(content), "foreign")
	must(t, os.Remove(lock))
	equal(t, "status", status(t, root), " M a\n?? newer\n")
}

// Settings of the repository that start programs have no effect, and no setting changes the
// message of a commit.
func TestCommitWithUnusualConfiguration(t *testing.T) {
	root := newTree(t, map[string]string{"a": "1\n"})
	ran := filepath.Join(t.TempDir(), "ran")
	program := "touch '" + ran + "'; false"
	for key, value := range map[string]string{
		"core.fsmonitor": program, "core.editor": program, "core.pager": program, "diff.external": program, "core.askPass": program, "log.showSignature": "true",
		"trailer.lockkeeper-batch.command": program, "trailer.separators": "=", "commit.cleanup": "scissors", "commit.verbose": "true", "commit.status": "true", "commit.template": "/nowhere",
		"core.commentChar": "L", "i18n.commitEncoding": "latin1", "i18n.logOutputEncoding": "latin1", "core.abbrev": "4", "core.quotePath": "true", "status.showUntrackedFiles": "no", "color.ui": "always",
		"core.logAllRefUpdates": "false", "format.pretty": "oneline", "advice.addIgnoredFile": "false", "add.ignoreErrors": "true", "diff.noprefix": "true", "gc.auto": "1", "status.relativePaths": "true",
	} {
		person(t, root, "config", key, value)
	}
	r := open(t, root)
	plant(t, root, map[string]string{"a": "2\n", "ü": "1\n"})
	done := commit(t, r, Commit{Paths: []string{"a", "ü"}, Subject: "Ünïcode", Body: "Lines\n# and comments", Trailers: []Trailer{{"Lockkeeper-Batch", "bätch"}}})
	raw := person(t, root, "cat-file", "commit", done.Hash)
	if !strings.HasSuffix(raw, "\n\nÜnïcode\n\nLines\n # and comments\n\nLockkeeper-Batch: bätch\n") || strings.Contains(raw, "encoding") {
		t.Error(raw)
	}
	found, err := r.Find(t.Context(), "Lockkeeper-Batch", "bätch")
	must(t, err)
	equal(t, "found", found, done.Hash)
	if _, err := os.Lstat(ran); err == nil {
		t.Error("a program of the configuration ran")
	}
}

package git

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/git/gitcmd"
)

type Commit struct {
	Paths    []string // paths to commit, from the root: created, changed or deleted
	Subject  string
	Body     string
	Trailers []Trailer
	Message  string // the whole message as its author wrote it; empty: made of the fields above
}

// A Committed is the result of a Commit.
type Committed struct {
	Hash   string // empty if HEAD already has all changes
	Branch string // empty if HEAD was detached
	Left   []Left // paths that are not in the commit
}

// A Left is a path that a commit omits, with the reason.
type Left struct{ Path, Reason string }

// commitPatience is how long git may take, including hooks, filters and the signer.
const commitPatience = 5 * time.Minute

// Commit commits exactly these paths as they are in the work tree. Hooks run and may refuse. If
// ctx ends meanwhile, the commit may have been made; Find finds it. If another process or person
// uses the repository, Commit does nothing and returns a *PausedError.
func (r *Repo) Commit(ctx context.Context, c Commit) (Committed, error) {
	text, err := message(c)
	if err != nil {
		return Committed{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, commitPatience, lockkeeper.WithNext(
		fmt.Errorf("git commit in %s took longer than %s: a hook, a filter or the signer hangs", r.top, commitPatience),
		"run git commit there by hand and see what it waits for"))
	defer cancel()
	for try := 1; ; try++ {
		p, err := r.plan(ctx, c.Paths)
		if err != nil {
			return Committed{}, fmt.Errorf("see what to commit in %s: %w", r.top, err)
		}
		done, err := r.commit(ctx, p, text)
		var undone error
		if done.Hash == "" {
			undone = r.unannounce(ctx, p)
		}
		isUnknown := strings.Contains(saysOf(err), "did not match any file")
		if !isUnknown || undone != nil || try == commitTries {
			return done, errors.Join(r.refused(err), undone)
		}
	}
}

// commitTries bounds the attempts of a commit whose new files another git has removed from
// the index: git commit with paths reads the index, then locks it, and writes what it read.
const commitTries = 10

func (r *Repo) commit(ctx context.Context, p *plan, text string) (Committed, error) {
	done := Committed{Left: p.left}
	if len(p.paths) == 0 {
		return done, nil
	}
	if err := r.announce(ctx, p); err != nil {
		return done, err
	}
	wanted := list(prefixed(literal, p.paths))
	out, err := r.change(ctx, wanted, slices.Concat(only, []string{"--message=" + text})...)
	if err == nil {
		if done.Branch, done.Hash, err = summary(out); err != nil {
			return done, err
		}
		if err := r.remember(ctx, p, done.Hash); err != nil {
			return done, err
		}
		return done, r.RepairIndex(ctx)
	}
	if exitOf(err) == 1 {
		_, dry := r.change(ctx, wanted, slices.Concat(only, []string{"--dry-run"})...)
		if exitOf(dry) == 1 && !isError(saysOf(dry)) { // nothing to commit, and no error
			return done, nil
		}
	}
	return done, err
}

// isError reports whether the message has more than warnings. core.autocrlf causes one for
// each file.
func isError(says string) bool {
	return slices.ContainsFunc(strings.Split(says, "\n"), func(line string) bool {
		return strings.HasPrefix(line, "error:") || strings.HasPrefix(line, "fatal:")
	})
}

// only makes git commit the paths of its input.
var only = []string{"commit", "--only", "--pathspec-from-file=-", "--pathspec-file-nul",
	"--cleanup=whitespace", "--no-status"}

// summary reads git's summary: [main (root-commit) <hash>] subject.
func summary(out string) (branch, hash string, err error) {
	about, _, found := strings.Cut(strings.TrimPrefix(out, "["), "] ")
	at := strings.LastIndexByte(about, ' ')
	if !found || at < 0 || !isHash(about[at+1:]) {
		return "", "", fmt.Errorf("git commit succeeded with an unknown summary: %q", gitcmd.Printable(out))
	}
	branch = strings.TrimSuffix(about[:at], " (root-commit)")
	if branch == "detached HEAD" { // no branch has a space in its name
		branch = ""
	}
	return branch, about[at+1:], nil
}

// refused converts the error of a git commit.
func (r *Repo) refused(err error) error {
	says := saysOf(err)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(says, w) })
	}
	act := "git commit in " + r.top
	switch {
	case exitOf(err) == 0:
		return err
	case has("tell me who you are", "empty ident name", "no email was given", "no name was given", "auto-detect email"):
		return &lockkeeper.InputError{Field: "git identity", Value: r.top, Reason: "git has no name and email for commits here",
			Next: `git config user.name "…" and git config user.email "…", there or with --global`}
	case has("failed to sign the data", "gpg failed", "failed to write commit object"):
		return &lockkeeper.RefusedError{Act: act, Reason: "signing failed (commit.gpgsign): " + says,
			Next: "unlock the key for this session, or turn commit.gpgsign off in this repository"}
	case exitOf(err) == 1:
		return &lockkeeper.RefusedError{Act: act, Reason: "a hook of the repository refused: " + says,
			Next: "fix what the hook reports, then commit again; the files stay as they are"}
	}
	return &lockkeeper.RefusedError{Act: act, Reason: says, Next: "commit again later; the files stay as they are"}
}

package git

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"lockkeeper"
)

// Commit is one batch to be committed.
type Commit struct {
	Paths    []string // relative to the root; created, changed or gone
	Subject  string
	Body     string
	Trailers []Trailer
}

// Committed is what became of a Commit.
type Committed struct {
	Hash   string // empty: HEAD has it all already
	Branch string // where it went; empty: HEAD was on no branch
	Left   []Left // what is not in it
}

// Left is a path that does not belong into a commit, and why.
type Left struct{ Path, Reason string }

// commitPatience is how long git may take with all of the repository's hooks, its
// filters and its signer.
const commitPatience = 5 * time.Minute

// Commit commits exactly these paths as they are in the work tree. Hooks run, and may
// refuse. When the context ends in the middle, the commit may have been made or not:
// Find tells. A *PausedError: somebody else uses the repository, nothing was done.
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
			undone = r.takeBack(ctx, p)
		}
		isForgotten := strings.Contains(saysOf(err), "did not match any file")
		if !isForgotten || undone != nil || try == commitTries {
			return done, errors.Join(r.refused(err), undone)
		}
	}
}

// commitTries is how often a commit is tried whose new files another git has made git
// forget again: git commit with paths reads the index, then locks it, and writes what
// it has read.
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
		done.Branch, done.Hash, err = summary(out)
		return done, err
	}
	if exitOf(err) == 1 {
		_, dry := r.change(ctx, wanted, slices.Concat(only, []string{"--dry-run"})...)
		if exitOf(dry) == 1 && !isError(saysOf(dry)) { // git has nothing to commit, and nothing against it
			return done, nil
		}
	}
	return done, err
}

// isError reports whether git says more than warnings, such as the one that core.autocrlf
// causes for each file.
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
		return "", "", fmt.Errorf("git commit succeeded, and answers with what is not understood: %q", printable(out))
	}
	branch = strings.TrimSuffix(about[:at], " (root-commit)")
	if branch == "detached HEAD" { // no branch has a space in its name
		branch = ""
	}
	return branch, about[at+1:], nil
}

// refused says why git did not commit, and what to do.
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
		return &lockkeeper.InputError{Field: "git identity", Value: r.top, Reason: "git does not know who commits here",
			Next: `git config user.name "…" and git config user.email "…", there or with --global`}
	case has("failed to sign the data", "gpg failed", "failed to write commit object"):
		return &lockkeeper.RefusedError{Act: act, Reason: "it is to be signed (commit.gpgsign), and that failed: " + says,
			Next: "unlock the key for this session, or turn commit.gpgsign off in this repository"}
	case exitOf(err) == 1:
		return &lockkeeper.RefusedError{Act: act, Reason: "a hook of the repository says no: " + says,
			Next: "see what the hook wants; the files are landed and can be committed later"}
	}
	return &lockkeeper.RefusedError{Act: act, Reason: says, Next: "the files are landed and can be committed later"}
}

package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"lockkeeper"
)

type State struct {
	Branch    string // without refs/heads/; empty if HEAD is detached
	Head      string // the commit; empty if there is no commit yet
	Operation string // in progress: rebase, merge, …, or IndexLock; or empty
}

// IndexLock is the operation of a git process that is changing the index, or was killed while
// doing so. The lock file does not show which.
const IndexLock = "index.lock"

// A mark is a file that git keeps while an operation is in progress.
type mark struct{ file, operation string }

// marks lists the marks in the order in which git checks them.
var marks = []mark{
	{"rebase-apply/applying", "am"},
	{"rebase-apply", "rebase"},
	{"rebase-merge", "rebase"},
	{"MERGE_HEAD", "merge"},
	{"CHERRY_PICK_HEAD", "cherry-pick"},
	{"REVERT_HEAD", "revert"},
	{"sequencer/todo", "cherry-pick or revert"},
	{"BISECT_LOG", "bisect"},
	{"index.lock", IndexLock},
}

// A PausedError reports the operation of a person or another git that prevents landing in the
// repository now.
type PausedError struct {
	Top       string    // the top of the work tree
	Operation string    // as in State; empty if HEAD is on another branch
	File      string    // the file of git that shows the operation is in progress
	Touched   time.Time // when File last changed
	Branch    string    // the branch of HEAD; empty if detached
	Want      string    // the wanted branch
}

func (e *PausedError) Error() string { return lockkeeper.JoinNext(e.fact(), e.NextStep()) }

func (e *PausedError) fact() string {
	since := e.Touched.UTC().Format(time.RFC3339)
	switch e.Operation {
	case "":
		at := "on branch " + e.Branch
		if e.Branch == "" {
			at = "on no branch"
		}
		return fmt.Sprintf("the work tree %s is %s, not on %s", e.Top, at, e.Want)
	case IndexLock:
		return fmt.Sprintf("another git process has worked in %s since %s", e.Top, since)
	case "bisect":
		return fmt.Sprintf("a bisect is in progress in %s since %s", e.Top, since)
	}
	return fmt.Sprintf("a %s is in progress in %s, last step at %s", e.Operation, e.Top, since)
}

func (e *PausedError) NextStep() string {
	switch e.Operation {
	case "":
		return "git switch " + e.Want
	case IndexLock:
		return "wait for it; if no git process runs there, a killed one left " + e.File + ": remove it"
	case "bisect":
		return "end it with git bisect reset"
	case "cherry-pick or revert":
		return "end it with --continue or --abort"
	}
	return "end it with git " + e.Operation + " --continue or --abort"
}

func (e *PausedError) Code() lockkeeper.Code { return lockkeeper.CodeBlocked }

func (r *Repo) State(ctx context.Context) (State, error) {
	s, err := r.head(ctx)
	if err != nil {
		return State{}, fmt.Errorf("read the git repository of %s: %w", r.root, err)
	}
	under, err := r.operation()
	if under != nil {
		s.Operation = under.Operation
	}
	return s, err
}

// operation returns the operation in progress, or nil.
func (r *Repo) operation() (*PausedError, error) {
	for _, m := range marks {
		file := filepath.Join(r.dir, m.file)
		info, err := os.Lstat(file)
		switch {
		case err == nil:
			return &PausedError{Top: r.top, Operation: m.operation, File: file, Touched: info.ModTime()}, nil
		case !isGone(err):
			return nil, err
		}
	}
	return nil, nil
}

func isGone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) }

// branchRefs is the prefix of branches among the refs.
const branchRefs = "refs/heads/"

// head reads HEAD, from git's files if possible.
func (r *Repo) head(ctx context.Context) (State, error) {
	file := filepath.Join(r.dir, "HEAD")
	text, err := os.ReadFile(file)
	if err != nil {
		return State{}, err
	}
	line := strings.TrimSuffix(string(text), "\n")
	ref, isRef := strings.CutPrefix(line, "ref: ")
	_, notLink := os.Readlink(file) // very old versions of git made a link
	switch {
	case notLink == nil || isRef && ref == branchRefs+".invalid" || !isRef && !isHash(line): // refs are not stored as files
		ref, err = r.git.Line(ctx, "symbolic-ref", "-q", "HEAD")
		if exitOf(err) == 1 {
			commit, err := r.git.Line(ctx, "rev-parse", "--verify", "HEAD^{commit}")
			return State{Head: commit}, err
		}
		if err != nil {
			return State{}, err
		}
	case !isRef:
		return State{Head: line}, nil
	}
	s := State{Branch: strings.TrimPrefix(ref, branchRefs)}
	text, err = os.ReadFile(filepath.Join(r.common, filepath.FromSlash(ref)))
	if s.Head = strings.TrimSuffix(string(text), "\n"); err == nil && isHash(s.Head) {
		return s, nil
	}
	if s.Head = r.packed(ref); s.Head != "" {
		return s, nil
	}
	s.Head, err = r.git.Line(ctx, "rev-parse", "-q", "--verify", ref+"^{commit}")
	if exitOf(err) == 1 {
		s.Head, err = "", nil
	}
	return s, err
}

// isHash reports whether s is a full object id.
func isHash(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}

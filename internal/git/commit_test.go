package git

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"lockkeeper"
	"lockkeeper/internal/git/gittest"
)

// A commit has what the batch created, changed, removed and made executable. What a
// person staged or edited elsewhere is unchanged. shows: CF-15 LM-38
func TestCommitHasExactlyItsPaths(t *testing.T) {
	root := newTree(t, map[string]string{"changed": "1\n", "gone": "1\n", "run.sh": "1\n", "same": "1\n", "staged": "1\n", "both": "1\n", "edited": "1\n", "removed": "1\n", "dir/old": "1\n"})
	plant(t, root, map[string]string{"staged": "2\n", "both": "2\n", "added": "2\n", "theirs/new": "2\n"})
	person(t, root, "add", "staged", "both", "added")
	person(t, root, "rm", "-q", "--cached", "removed")
	person(t, root, "add", "--intent-to-add", "theirs/new")
	plant(t, root, map[string]string{"both": "3\n", "edited": "2\n", "untracked": "x"})
	before := status(t, root)
	staged := person(t, root, "diff", "--cached")

	plant(t, root, map[string]string{"changed": "2\n", "new": "2\n", "dir/sub/new": "2\n", "link": "->changed"})
	remove(t, root, "gone", "dir/old")
	must(t, os.Chmod(filepath.Join(root, "run.sh"), 0o755))
	r := open(t, root)
	done := commit(t, r, Commit{
		Paths:   []string{"changed", "new", "dir/sub/new", "link", "gone", "dir/old", "run.sh", "same", "never-there", "changed"},
		Subject: "Batch b1", Body: "Why it is so.",
		Trailers: []Trailer{{"Lockkeeper-Batch", "blog/posts b1"}, {"Lockkeeper-Fence", "42"}},
	})

	equal(t, "commit", inCommit(t, root, done.Hash), []string{"A dir/sub/new", "A link", "A new", "D dir/old", "D gone", "M changed", "M run.sh"})
	equal(t, "branch", done.Branch, "main")
	equal(t, "left", len(done.Left), 0)
	equal(t, "status", status(t, root), before)
	equal(t, "staged", person(t, root, "diff", "--cached"), staged)
	equal(t, "mode", strings.Fields(person(t, root, "ls-tree", "HEAD", "run.sh"))[0], "100755")
	equal(t, "HEAD", strings.TrimSpace(person(t, root, "rev-parse", "HEAD")), done.Hash)
	equal(t, "message", person(t, root, "log", "-1", "--format=%B"), "Batch b1\n\nWhy it is so.\n\nLockkeeper-Batch: blog/posts b1\nLockkeeper-Fence: 42\n\n")
	equal(t, "trailers", person(t, root, "log", "-1", "--format=%(trailers:key=Lockkeeper-Fence,valueonly)"), "42\n\n")
}

// The commit has the version in the work tree, even if a person staged another one.
func TestCommitTakesTheWorkTree(t *testing.T) {
	root := newTree(t, map[string]string{"a": "1\n", "kept": "1\n"})
	plant(t, root, map[string]string{"a": "half\n", "new": "half\n"})
	person(t, root, "add", "a", "new")
	person(t, root, "rm", "-q", "--cached", "kept")
	plant(t, root, map[string]string{"a": "whole\n", "new": "whole\n", "kept": "2\n"})
	done := commit(t, open(t, root), Commit{Paths: []string{"a", "new", "kept"}})
	equal(t, "commit", inCommit(t, root, done.Hash), []string{"A new", "M a", "M kept"})
	equal(t, "content", person(t, root, "show", "HEAD:a", "HEAD:new"), "whole\nwhole\n")
	equal(t, "status", status(t, root), "")
}

// A path means itself. shows: SW-38
func TestCommitReadsPathsAsTheyAre(t *testing.T) {
	odd := []string{"*", "a b", "-rf", "--all", ":(glob)**", ":!x", ":", "new\nline", "tab\tx", "\"quoted\"", "back\\slash", "bytes\xff\xfe", "[ab]", "ü", "#x", " lead", "-dir/:(top)x", "~x", "a\x1b[31m"}
	for _, isNew := range []bool{true, false} {
		others := map[string]string{"a": "1", "b": "1", "x": "1", "ab": "1", "deep/er": "1"}
		root := newTree(t, others)
		files := map[string]string{}
		for _, path := range odd {
			files[path] = "1"
		}
		if !isNew {
			plant(t, root, files)
			person(t, root, "add", "-A")
			person(t, root, "commit", "-q", "-m", "odd")
		}
		for path := range others {
			others[path] = "edited"
		}
		plant(t, root, others)
		plant(t, root, map[string]string{"untracked": "x"})
		before := status(t, root)
		r := open(t, root)
		for _, path := range odd {
			plant(t, root, map[string]string{path: "2"})
			done := commit(t, r, Commit{Paths: []string{path}})
			want := "M " + path
			if isNew {
				want = "A " + path
			}
			equal(t, "commit", inCommit(t, root, done.Hash), []string{want})
			remove(t, root, path)
			done = commit(t, r, Commit{Paths: []string{path}})
			equal(t, "removal", inCommit(t, root, done.Hash), []string{"D " + path})
		}
		equal(t, "status", status(t, root), before)
	}
	r := open(t, newTree(t, nil))
	for _, path := range []string{"", ".", "..", "../x", "/etc/passwd", "a/../b", "a//b", "a/", "a\x00b", ".git/../../x"} {
		if _, err := r.Commit(t.Context(), Commit{Paths: []string{path}}); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
			t.Errorf("%q: %v", path, err)
		}
	}
}

// A commit leaves out paths that git cannot store, and reports them.
func TestCommitLeavesOutWhatIsNotGits(t *testing.T) {
	root := newTree(t, map[string]string{".gitignore": "*.log\n/build/\n", "tracked.log": "1"})
	person(t, root, "add", "-f", "tracked.log")
	person(t, root, "commit", "-q", "-m", "a log")
	person(t, root, "init", "-q", "nested")
	plant(t, root, map[string]string{"x.log": "1", "build/out": "1", "tracked.log": "2", "good": "1", "nested/file": "1", "real/file": "1", "real/other": "1", "link": "->real"})
	must(t, syscall.Mkfifo(filepath.Join(root, "pipe"), 0o644))
	done := commit(t, open(t, root), Commit{Paths: []string{"x.log", "build/out", "tracked.log", "good", "nested/file", "link/file", "real", "pipe"}})
	equal(t, "commit", inCommit(t, root, done.Hash), []string{"A good", "M tracked.log"})
	left := map[string]string{}
	for _, l := range done.Left {
		left[l.Path] = l.Reason
	}
	for path, reason := range map[string]string{"x.log": "git ignores it", "build/out": "git ignores it", "nested/file": "it belongs to the repository in nested",
		"link/file": "it is behind the link link", "real": "a directory", "pipe": "neither a file nor a link"} {
		equal(t, path, left[path], reason)
	}
	equal(t, "number left", len(left), 6)
	done = commit(t, open(t, root), Commit{Paths: []string{"x.log"}})
	equal(t, "hash of nothing", done.Hash, "")
}

// A file can be replaced by a directory and a directory by a file. Other people's files there
// stay unchanged.
func TestCommitOfAFileThatBecameADirectory(t *testing.T) {
	root := newTree(t, map[string]string{"a": "1", "b/x": "1", "b/y": "1", "c": "1"})
	remove(t, root, "a", "b", "c")
	plant(t, root, map[string]string{"a/x": "2", "a/theirs": "2", "b": "2", "c/theirs": "2"})
	r := open(t, root)
	hook(t, r, "pre-commit", "exit 1")
	before := workTreeState(t, root)
	c := Commit{Subject: "Swap", Paths: []string{"a", "a/x", "b", "b/x", "b/y", "c"}}
	if _, err := r.Commit(t.Context(), c); lockkeeper.CodeOf(err) != lockkeeper.CodeRefused {
		t.Fatal(err)
	}
	equal(t, "after a refusal", withoutTimes(workTreeState(t, root)), withoutTimes(before))
	hook(t, r, "pre-commit", "exit 0")
	done := commit(t, r, c)
	equal(t, "commit", inCommit(t, root, done.Hash), []string{"A a/x", "A b", "D a", "D b/x", "D b/y"})
	equal(t, "left", done.Left[0], Left{"c", "a directory"})
	equal(t, "status", status(t, root), " D c\n?? a/theirs\n?? c/theirs\n")
}

// withoutTimes removes the file times and other cached data of the index.
func withoutTimes(s string) string {
	var lines []string
	for line := range strings.Lines(s) {
		if !strings.HasPrefix(line, "  ") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// If there is nothing to commit, Commit returns no error and makes no commit.
func TestCommitOfWhatIsCommitted(t *testing.T) {
	root := newTree(t, map[string]string{"a": "1"})
	r := open(t, root)
	head := person(t, root, "rev-parse", "HEAD")
	plant(t, root, map[string]string{"a": "1", "staged": "1"})
	person(t, root, "add", "staged")
	for _, paths := range [][]string{{"a"}, {"a", "nowhere"}, {"nowhere"}, nil} {
		equal(t, "hash", commit(t, r, Commit{Paths: paths}).Hash, "")
	}
	equal(t, "HEAD", person(t, root, "rev-parse", "HEAD"), head)
	equal(t, "status", status(t, root), "A  staged\n")
}

// Commit works for the first commit of a branch and for both hash formats.
func TestCommitInANewRepository(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		root := t.TempDir()
		person(t, root, "init", "-q", "-b", "main", "--object-format="+format)
		plant(t, root, map[string]string{"a": "1", "b": "1", "staged": "1"})
		person(t, root, "add", "staged")
		r := open(t, root)
		s, err := r.State(t.Context())
		must(t, err)
		equal(t, "state", s, State{Branch: "main"})
		found, err := r.Find(t.Context(), "Key", "1")
		must(t, err)
		equal(t, "found", found, "")
		done := commit(t, r, Commit{Paths: []string{"a"}})
		equal(t, "commit", inCommit(t, root, done.Hash), []string{"A a"})
		equal(t, "branch", done.Branch, "main")
		equal(t, "status", status(t, root), "A  staged\n?? b\n")
		person(t, root, "checkout", "-q", "--detach")
		equal(t, "branch of a detached HEAD", commit(t, r, Commit{Paths: []string{"b"}}).Branch, "")
	}
}

// The root may be below the top, in another work tree, or in a submodule.
func TestCommitWhereTheRootIsElsewhere(t *testing.T) {
	top := newTree(t, map[string]string{"app/a": "1", "b": "1"})
	other := filepath.Join(t.TempDir(), "other work tree")
	person(t, top, "worktree", "add", "-q", "-b", "side", other)
	person(t, top, "-c", "protocol.file.allow=always", "submodule", "add", "-q", newTree(t, map[string]string{"app/a": "1"}), "sub")
	linked := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(top, linked))
	for root, branch := range map[string]string{top: "main", other: "side", filepath.Join(top, "sub"): "main", linked: "main"} {
		r := open(t, filepath.Join(root, "app"))
		plant(t, root, map[string]string{"app/a": root, "app/new " + branch: "1"})
		before, err := r.State(t.Context())
		must(t, err)
		done := commit(t, r, Commit{Paths: []string{"a", "new " + branch}})
		equal(t, "branch", done.Branch, branch)
		if list := inCommit(t, root, done.Hash); !strings.Contains(strings.Join(list, "\n"), "M app/a") {
			t.Errorf("%s: %q", root, list)
		}
		equal(t, "moved", between(t, root, before.Head, done.Hash)[0], "app/a")
	}
	for _, root := range []string{t.TempDir(), filepath.Join(top, ".git")} {
		r, err := Open(t.Context(), root, gittest.Env())
		var none *NoneError
		if r != nil || !errors.As(err, &none) {
			t.Errorf("%s: %v, %v", root, r, err)
		}
	}
}

// Variables that redirect the caller's git do not redirect this one.
func TestOpenFindsTheRootsOwnRepository(t *testing.T) {
	root, other := newTree(t, map[string]string{"a": "1"}), newTree(t, map[string]string{"a": "1"})
	env := append(gittest.Env(), "GIT_DIR="+filepath.Join(other, ".git"), "GIT_WORK_TREE="+other, "GIT_INDEX_FILE="+filepath.Join(other, ".git/index"), "GIT_ICASE_PATHSPECS=1", "GIT_PREFIX=x/")
	r, err := Open(t.Context(), root, env)
	must(t, err)
	plant(t, root, map[string]string{"a": "2"})
	done := commit(t, r, Commit{Paths: []string{"a"}})
	equal(t, "commit", inCommit(t, root, done.Hash), []string{"M a"})
	equal(t, "other", status(t, other), "")
}

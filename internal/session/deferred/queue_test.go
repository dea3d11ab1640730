package deferred

import (
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockkeeper"
	"lockkeeper/internal/project"
)

// newQueue returns the queue of a codebase with one file, and the path of that file.
func newQueue(t *testing.T, content string) (*Queue, string) {
	t.Helper()
	dir, state := t.TempDir(), t.TempDir()
	settings := project.Settings{Dir: dir, Env: func(name string) (string, bool) { return state, name == "XDG_STATE_HOME" || name == "HOME" }}
	if err := os.WriteFile(filepath.Join(dir, "lockkeeper.yaml"), []byte("gate: {allowed_write_paths: [b.txt, c.txt, .claude]}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := project.Init(t.Context(), settings, project.InitOptions{}); err != nil {
		t.Fatal(err)
	}
	a, err := project.Open(t.Context(), settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	file := filepath.Join(dir, "b.txt")
	writeFile(t, file, content)
	return Open(a), file
}

func writeFile(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func holding(content string) lockkeeper.Version {
	return lockkeeper.Version{Kind: lockkeeper.File, Mode: 0o644, Sum: sha256.Sum256([]byte(content))}
}

// expects lands the patches that are due, and checks the file and the news.
func (q *Queue) expects(t *testing.T, file, content, news string) {
	t.Helper()
	if _, err := q.Land(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != content {
		t.Errorf("%q %v, want %q", got, err, content)
	}
	told, err := q.News("B")
	if text := strings.Join(told, "\n"); err != nil || !strings.Contains(text, news) {
		t.Errorf("told %q %v, want %q", text, err, news)
	}
}

// Whole content replaces only the content that its author has seen.
func TestWholeReplacesWhatWasSeen(t *testing.T) {
	q, file := newQueue(t, "two\n")
	mine := Patch{Path: file, By: "heron", Session: "B"}
	if _, err := q.Put(t.Context(), mine, []byte("B\n"), true); lockkeeper.CodeOf(err) != lockkeeper.CodeInput || !strings.Contains(err.Error(), "has not read it") {
		t.Errorf("without a base: %v", err)
	}
	mine.Base = holding("two\n")
	writeFile(t, file, "two\nmore of A\n")
	if _, err := q.Put(t.Context(), mine, []byte("B\n"), true); err != nil {
		t.Fatal(err)
	}
	q.expects(t, file, "two\nmore of A\n", "NOT LANDED")
	mine.Base = holding("two\nmore of A\n")
	if _, err := q.Put(t.Context(), mine, []byte("B\n"), true); err != nil {
		t.Fatal(err)
	}
	q.expects(t, file, "B\n", "LANDED")
	mine.Path, mine.Base = filepath.Join(filepath.Dir(file), "c.txt"), lockkeeper.Version{}
	if _, err := q.Put(t.Context(), mine, []byte("new\n"), true); err != nil {
		t.Fatal(err)
	}
	q.expects(t, mine.Path, "new\n", "LANDED")
}

// If the lines of a hunk occur in several places and the file has changed, the line number does
// not decide.
func TestAmbiguousDiff(t *testing.T) {
	const before = "a\nb\nx\nx\nx\n"
	q, file := newQueue(t, before)
	mine, diff := Patch{Path: file, By: "heron", Session: "B"}, []byte("@@ -3 +3 @@\n-x\n+Y\n")
	if _, err := q.Put(t.Context(), mine, diff, false); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
		t.Errorf("an ambiguous x: %v", err)
	}
	mine.Base = holding(before)
	if _, err := q.Put(t.Context(), mine, diff, false); err != nil {
		t.Fatal(err)
	}
	q.expects(t, file, "a\nb\nY\nx\nx\n", "LANDED")
	writeFile(t, file, before)
	if _, err := q.Put(t.Context(), mine, diff, false); err != nil {
		t.Fatal(err)
	}
	writeFile(t, file, "of A\n"+before)
	q.expects(t, file, "of A\n"+before, "NOT LANDED")
	// A single remaining place need not be the intended one.
	writeFile(t, file, "x\nb\nx\n")
	mine.Base = holding("x\nb\nx\n")
	if _, err := q.Put(t.Context(), mine, diff, false); err != nil {
		t.Fatal(err)
	}
	writeFile(t, file, "x\nb\nof A\n")
	q.expects(t, file, "x\nb\nof A\n", "NOT LANDED")
}

// A diff removes a file only if it matches the whole file.
func TestDeferredRemoval(t *testing.T) {
	const before = "a\nb\n"
	q, file := newQueue(t, before)
	mine, diff := Patch{Path: file, By: "heron", Session: "B", Base: holding(before)}, []byte("--- a/b.txt\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n")
	if _, err := q.Put(t.Context(), mine, diff, false); err != nil {
		t.Fatal(err)
	}
	writeFile(t, file, before+"of A\n")
	q.expects(t, file, before+"of A\n", "NOT LANDED")
	writeFile(t, file, before)
	if _, err := q.Put(t.Context(), mine, diff, false); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Land(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

// Paths that the gate never writes are refused at once: paths outside the allowlist, and files
// that configure the checks, even if the allowlist has them.
func TestRefusedAtOnce(t *testing.T) {
	q, file := newQueue(t, "two\n")
	for _, name := range []string{"elsewhere.txt", "lockkeeper.yaml", ".claude/settings.json", ".claude/settings.local.json"} {
		p := Patch{Path: filepath.Join(filepath.Dir(file), name), By: "heron", Session: "B"}
		if _, err := q.Put(t.Context(), p, []byte("{}\n"), true); lockkeeper.CodeOf(err) != lockkeeper.CodeViolation {
			t.Errorf("%s: %v", name, err)
		}
	}
	if list, err := q.List(); err != nil || len(list) != 0 {
		t.Errorf("%v %v", list, err)
	}
}

// An unreadable patch stops no other patch and is reported once.
func TestUnreadable(t *testing.T) {
	q, file := newQueue(t, "two\n")
	mine := Patch{Path: file, By: "heron", Session: "B", Base: holding("two\n")}
	if _, err := q.Put(t.Context(), mine, []byte("B\n"), true); err != nil {
		t.Fatal(err)
	}
	writeFile(t, q.file("0-damaged"), "{")
	writeFile(t, q.file("1-empty"), "{}")
	if err := os.Mkdir(q.file("2-directory"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Land(t.Context()); err != nil {
		t.Fatal(err)
	}
	told, err := q.News("B")
	if text := strings.Join(told, "\n"); err != nil || len(told) != 4 || !strings.Contains(text, "LANDED your deferred patch of b.txt") || strings.Count(text, "UNREADABLE") != 3 {
		t.Errorf("%q %v", told, err)
	}
	if told, err := q.News("B"); err != nil || len(told) != 0 {
		t.Errorf("told again: %q %v", told, err)
	}
	if _, err := os.Stat(filepath.Join(q.dir, "0-damaged"+damagedEnd)); err != nil {
		t.Error(err)
	}
}

// A git diff of another file is refused, even if its lines fit.
func TestDiffOfAnother(t *testing.T) {
	q, file := newQueue(t, "one\ntwo\n")
	const lines = "@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n"
	for names, fits := range map[string]bool{
		"--- a/b.txt\n+++ b/b.txt\n":                     true,
		"--- a/below/b.txt\n+++ b/below/b.txt\n":         true, // named from the outer repository
		"--- b.txt.orig\t2026-01-31\n+++ /tmp/new.txt\n": true, // as diff writes it
		"":                                       true,
		"--- a/other.txt\n+++ b/other.txt\n":     false,
		"--- a/my file.txt\t\n+++ b/b.txt\n":     false,
		"--- a/ab.txt\n+++ b/ab.txt\n":           false,
		"--- a/b.txt\n+++ b/../../b.txt/x.txt\n": false,
	} {
		_, err := q.Put(t.Context(), Patch{Path: file, By: "heron", Session: "B"}, []byte(names+lines), false)
		if fits != (err == nil) || err != nil && !strings.Contains(err.Error(), ", not only b.txt") {
			t.Errorf("%q: %v", names, err)
		}
	}
}

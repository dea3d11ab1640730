package parcel_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockkeeper/internal/git/gittest"
	"lockkeeper/internal/git/parcel"
)

// A parcel has exactly the tree of the sender: uncommitted, staged, new and deleted files, and edits
// byte for byte. The sender's index and HEAD do not change.
func TestParcel(t *testing.T) {
	ctx := t.Context()
	base := t.TempDir()
	in := func(dir string, args ...string) string { return gittest.Run(t, filepath.Join(base, dir), args...) }
	write := func(path, text string) {
		t.Helper()
		path = filepath.Join(base, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"remote", "a"} {
		if err := os.Mkdir(filepath.Join(base, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	in("remote", "init", "-q", "--bare", "-b", "main")
	in("a", "init", "-q", "-b", "main")
	for path, text := range map[string]string{"kept": "kept", "edited": "old", "staged": "old", "gone": "gone", "docs/own": "own", ".gitignore": "ignored\n", "crlf.txt": "a\n", ".gitattributes": "crlf.txt eol=crlf\n", "dir/file": "x"} {
		write("a/"+path, text)
	}
	in("a", "add", "-A")
	in("a", "commit", "-qm", "first")
	in("a", "remote", "add", "origin", "../remote")
	in("a", "push", "-qu", "origin", "main")
	in("a", "clone", "-q", "../remote", "../b")
	write("a/edited", "new")
	write("a/staged", "staged")
	in("a", "add", "staged")
	write("a/staged", "later")
	write("a/new", "new")
	write("a/ignored", "secret")
	if err := os.Remove(filepath.Join(base, "a/gone")); err != nil {
		t.Fatal(err)
	}
	before := in("a", "status", "--porcelain=v2") + in("a", "diff", "--cached")

	a := open(t, filepath.Join(base, "a"))
	remote, err := a.Remote(ctx, "")
	must(t, err)
	tree, err := a.Snapshot(ctx, []string{"docs"})
	must(t, err)
	commit, err := a.Pack(ctx, parcel.Parcel{Base: tree, Parents: []string{a.Head(ctx)}, Subject: "a call",
		Files: map[string][]byte{"request": []byte("do it\n")},
		Edits: []parcel.Edit{text("dir", "now a file\r\n"), gone("dir/file"), text("new", "newer"), gone("kept")}})
	must(t, err)
	const ref = "refs/lockkeeper/space/base/1"
	must(t, a.Push(ctx, remote, commit, ref))
	if after := in("a", "status", "--porcelain=v2") + in("a", "diff", "--cached"); after != before {
		t.Errorf("the sender has\n%s\nand had\n%s", after, before)
	}

	b := open(t, filepath.Join(base, "b"))
	must(t, b.Fetch(ctx, "origin", ref, commit))
	if err := b.Fetch(ctx, "origin", ref, tree); err == nil {
		t.Error("another commit than the expected one was accepted")
	}
	request, err := b.File(ctx, commit, "request", 100)
	if err != nil || string(request) != "do it\n" {
		t.Errorf("%q, %v", request, err)
	}
	if _, err := b.File(ctx, commit, "request", 3); err == nil {
		t.Error("a file above the limit was read")
	}
	out, err := b.NewCheckout(ctx, filepath.Join(base, "out"))
	must(t, err)
	for range 2 {
		must(t, out.Enter(ctx, commit))
		want := map[string]string{"kept": "kept", "edited": "new", "staged": "later", "new": "new", ".gitignore": "ignored\n", "crlf.txt": "a\r\n", ".gitattributes": "crlf.txt eol=crlf\n", "dir/file": "x"}
		if has := files(t, filepath.Join(base, "out")); !equal(has, want) {
			t.Fatalf("the checkout has %q, want %q", has, want)
		}
		if said := in("out", "log", "--format=%s"); strings.TrimSpace(said) != "first" {
			t.Errorf("its history is %q", said)
		}
	}
	from, to, err := b.Trees(ctx, commit)
	must(t, err)
	edits, err := b.Edits(ctx, from, to, 10)
	must(t, err)
	var said []string
	for _, e := range edits {
		line := e.Path + " " + e.Now
		if e.Now != parcel.ModeNone {
			body, err := b.Blob(ctx, e.ID, 100)
			must(t, err)
			line += " " + string(body)
		}
		said = append(said, line)
	}
	slices.Sort(said)
	if want := []string{"dir 100644 now a file\r\n", "dir/file 000000", "kept 000000", "new 100644 newer"}; !slices.Equal(said, want) {
		t.Errorf("edits %q", said)
	}
	// Back to a tree without the new files.
	write("a/edited", "third")
	must(t, os.Remove(filepath.Join(base, "a/new")))
	tree, err = a.Snapshot(ctx, []string{"docs"})
	must(t, err)
	if commit, err = a.Pack(ctx, parcel.Parcel{Base: tree, Parents: []string{a.Head(ctx)}, Subject: "a call"}); err != nil {
		t.Fatal(err)
	}
	must(t, a.Push(ctx, remote, commit, ref))
	must(t, b.Fetch(ctx, "origin", ref, commit))
	must(t, out.Enter(ctx, commit))
	if has := files(t, filepath.Join(base, "out")); has["edited"] != "third" || has["new"] != "" {
		t.Errorf("the checkout has %q", has)
	}
	must(t, a.Drop(ctx, remote, ref))
	must(t, a.Drop(ctx, remote, ref))
	if left := in("remote", "for-each-ref", "refs/lockkeeper"); left != "" {
		t.Errorf("left %s", left)
	}
}

// A parcel cannot have files of git.
func TestReservedNames(t *testing.T) {
	dir := t.TempDir()
	gittest.Run(t, dir, "init", "-q")
	r := open(t, dir)
	tree, err := r.Snapshot(t.Context(), nil)
	must(t, err)
	for _, path := range []string{".git/config", "sub/.GIT/hooks/x", "../x", "/x"} {
		if c, err := r.Pack(t.Context(), parcel.Parcel{Base: tree, Subject: "x", Edits: []parcel.Edit{text(path, "x")}}); err == nil {
			t.Errorf("%s: %s", path, c)
		}
	}
}

func open(t *testing.T, dir string) *parcel.Repo {
	t.Helper()
	r, err := parcel.Open(t.Context(), dir, t.TempDir(), os.Environ())
	must(t, err)
	return r
}

func text(path, body string) parcel.Edit {
	return parcel.Edit{Path: path, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(body)), nil }}
}

func gone(path string) parcel.Edit { return parcel.Edit{Path: path} }

func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	has := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if d != nil && d.Name() == ".git" {
				return filepath.SkipDir
			}
			return err
		}
		body, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path) // below dir by construction
		has[rel] = string(body)
		return err
	}))
	return has
}

func equal(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for name, text := range a {
		if b[name] != text {
			return false
		}
	}
	return true
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A keeper's commits have the files of directories byte for byte, and only those that exist; what
// did not change is not read again.
func TestKeeper(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	gittest.Run(t, dir, "init", "-q")
	must(t, os.WriteFile(filepath.Join(dir, ".gitattributes"), []byte("* text eol=crlf\n"), 0o600))
	must(t, os.MkdirAll(filepath.Join(dir, "docs", "a"), 0o755))
	put := func(name, text string) { must(t, os.WriteFile(filepath.Join(dir, "docs", name), []byte(text), 0o600)) }
	put("a/one", "1\r\n\x00")
	put("two", "2\n")
	put("skipped", "x")
	must(t, os.Symlink("two", filepath.Join(dir, "docs", "link")))
	k := open(t, dir).NewKeeper()
	kept := []parcel.Kept{{Name: "documents", Dir: filepath.Join(dir, "docs"), Skip: func(rel string) bool { return rel == "skipped" }}, {Name: "none", Dir: filepath.Join(dir, "missing")}}
	for round, want := range []map[string]string{
		{"documents/a/one": "1\r\n\x00", "documents/two": "2\n", "run.json": "{}"},
		{"documents/a/one": "1\r\n\x00", "documents/two": "3\n", "documents/three": "", "run.json": "{}"},
		{"documents/two": "3\n", "documents/three": "", "run.json": "{}"},
	} {
		switch round {
		case 1:
			put("two", "3\n")
			put("three", "")
		case 2:
			must(t, os.RemoveAll(filepath.Join(dir, "docs", "a")))
		}
		commit, err := k.Keep(ctx, kept, map[string][]byte{"run.json": []byte("{}")}, "state")
		must(t, err)
		again, err := k.Keep(ctx, kept, map[string][]byte{"run.json": []byte("{}")}, "state")
		must(t, err)
		r := open(t, dir)
		if now, is := gittest.Run(t, dir, "rev-parse", commit+"^{tree}"), gittest.Run(t, dir, "rev-parse", again+"^{tree}"); now != is {
			t.Errorf("the same files are %s and %s", now, is)
		}
		out := filepath.Join(t.TempDir(), "out")
		must(t, r.Extract(ctx, commit, out))
		if has := files(t, out); !equal(has, want) {
			t.Errorf("round %d: %q, want %q", round, has, want)
		}
	}
	// Names that no keeper makes are refused.
	blob := strings.TrimSpace(gittest.Run(t, dir, "hash-object", "-w", "--no-filters", "docs/two"))
	for _, entry := range []string{"120000 blob " + blob + "\tlink", "100644 blob " + blob + "\t.git"} {
		must(t, os.WriteFile(filepath.Join(dir, "entry"), []byte(entry+"\n"), 0o600))
		in, err := os.Open(filepath.Join(dir, "entry"))
		must(t, err)
		tree := exec.Command("git", "mktree")
		tree.Dir, tree.Stdin, tree.Env = dir, in, gittest.Env()
		id, err := tree.Output()
		must(t, err)
		if err := open(t, dir).Extract(ctx, strings.TrimSpace(string(id)), filepath.Join(t.TempDir(), "out")); err == nil {
			t.Errorf("%q was written", entry)
		}
	}
}

package parcel_test

import (
	"io"
	"os"
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

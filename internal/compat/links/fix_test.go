package links_test

import (
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockkeeper"
	"lockkeeper/internal/compat/links"
)

// A fix rewrites the targets of moved files, however they are written, and nothing else.
//
// shows: LE-42 LE-45
func TestFix(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "archive/old plan (1).md", "# Plan\n")
	put(t, dir, "archive/docs/gone.md", "# Gone\n")
	put(t, dir, "archive/pic.png", "")
	const before = "# Doc\n\n[a](gone.md#gone \"title\") ![b](../pic.png) [c](/docs/gone.md?x=1) <a href='gone.md'>d</a> [e](<old plan (1).md>)\n" +
		"`docs/gone.md` and docs/gone.md, ``docs/gone.md:12`` [f][f] [g](other.md) [gone.md](gone.md)\n\n[f]: gone.md 'title'\n\n```\n[h](gone.md)\n```\n"
	const after = "# Doc\n\n[a](../archive/docs/gone.md#gone \"title\") ![b](../archive/pic.png) [c](/archive/docs/gone.md?x=1) <a href='../archive/docs/gone.md'>d</a> [e](<../archive/old%20plan%20%281%29.md>)\n" +
		"`archive/docs/gone.md` and archive/docs/gone.md, ``archive/docs/gone.md:12`` [f][f] [g](other.md) [gone.md](../archive/docs/gone.md)\n\n[f]: ../archive/docs/gone.md 'title'\n\n```\n[h](gone.md)\n```\n"
	put(t, dir, "docs/x.md", before)
	o := links.Options{Documents: []string{"docs/x.md"}}
	rep := check(t, dir, o)
	rewrites, err := links.Rewrites(t.Context(), dir, rep.Fixes())
	if err != nil {
		t.Fatal(err)
	}
	if len(rewrites) != 1 || string(rewrites[0].Content) != after || len(rewrites[0].Fixes) != 10 {
		t.Fatalf("%d rewrites:\n%s", len(rewrites), rewrites[0].Content)
	}
	if want := (lockkeeper.Version{Kind: lockkeeper.File, Mode: 0o644, Sum: sha256.Sum256([]byte(before))}); rewrites[0].Base != want || rewrites[0].Path != "docs/x.md" {
		t.Errorf("made from %v", rewrites[0].Base)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "docs", "x.md")); err != nil || string(text) != before {
		t.Errorf("the document was written: %v", err)
	}
	put(t, dir, "docs/x.md", after)
	wantBroken(t, check(t, dir, o), "missing docs/x.md other.md")
}

// Names with a special meaning in Markdown or URLs are encoded or not fixed.
func TestFixOddNames(t *testing.T) {
	for _, name := range []string{"a b.md", "a(b).md", "a)b.md", "a#b.md", "a?b.md", "a%20b.md", "a<b>.md", `a"b'.md`, "a[b].md", "a*b_c.md", "a&amp;b.md", "a`b.md", "ü.md", "http:a.md"} {
		dir := t.TempDir()
		put(t, dir, "archive/"+name, "")
		encoded := strings.NewReplacer("%", "%25", " ", "%20", "#", "%23", "?", "%3F", "(", "%28", ")", "%29", "<", "%3C", ">", "%3E", `"`, "%22", "[", "%5B", "]", "%5D", "&", "%26", "`", "%60").Replace(name)
		put(t, dir, "x.md", "[x](./"+encoded+") *y*\n\n[z](nowhere.md)\n")
		o := links.Options{Documents: []string{"x.md"}}
		rewrites, err := links.Rewrites(t.Context(), dir, check(t, dir, o).Fixes())
		if err != nil {
			t.Fatal(err)
		}
		if len(rewrites) != 1 {
			t.Fatalf("%s: %d rewrites", name, len(rewrites))
		}
		put(t, dir, "x.md", string(rewrites[0].Content))
		if got := broken(check(t, dir, o)); !slices.Equal(got, []string{"missing x.md nowhere.md"}) {
			t.Errorf("%s: %s\n%s", name, got, rewrites[0].Content)
		}
	}
}

// A fix that cannot be written in its context is skipped, and the others are applied.
func TestFixThatCannotBe(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "the archive/lost.md", "")
	put(t, dir, "attic/moved.md", "")
	put(t, dir, "x.md", "[a](old/moved.md) see old/lost.md and `old/lost.md`\n")
	fixes := check(t, dir, links.Options{Documents: []string{"x.md"}}).Fixes()
	rewrites, err := links.Rewrites(t.Context(), dir, fixes)
	if err != nil {
		t.Fatal(err)
	}
	if len(fixes) != 3 || len(rewrites) != 1 || string(rewrites[0].Content) != "[a](attic/moved.md) see old/lost.md and `old/lost.md`\n" || len(rewrites[0].Fixes) != 1 {
		t.Errorf("%d fixes, %+v", len(fixes), rewrites)
	}
}

// A document that has changed since the check is not rewritten.
func TestFixOfChangedDocument(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "archive/gone.md", "")
	put(t, dir, "x.md", "[a](gone.md)\n")
	fixes := check(t, dir, links.Options{Documents: []string{"x.md"}}).Fixes()
	put(t, dir, "x.md", "word [a](gone.md)\n")
	var refused *lockkeeper.RefusedError
	if _, err := links.Rewrites(t.Context(), dir, fixes); !errors.As(err, &refused) {
		t.Errorf("%v", err)
	}
}

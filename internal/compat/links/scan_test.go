package links

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Heading ids match GitHub's.
//
// shows: GP-39
func TestSlugs(t *testing.T) {
	for text, want := range map[string]string{
		"Hello, World!":               "hello-world",
		"double  space":               "double--space",
		"a_b-c.d":                     "a_b-cd",
		"C++ & Go":                    "c--go",
		"Привет non-latin 你好":         "привет-non-latin-你好",
		"😄 emoji":                     "-emoji",
		":ok: No underscore":          "ok-no-underscore",
		"1. first":                    "1-first",
		"I ♥ unicode":                 "i--unicode",
		"Dash–dash—dash":              "dashdashdash",
		"apostrophe’s should'be gone": "apostrophes-shouldbe-gone",
		"tab\there":                   "tabhere",
		"Ⅳ ① é é":                     "ⅳ--é-é",
		"":                            "",
	} {
		if got := slugOf(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	var a anchors
	for _, heading := range []string{"Foo", "foo", "Foo 1", "foo", "Foo 1", ""} {
		a.heading(heading)
	}
	for _, id := range []string{"foo", "foo-1", "foo-1-1", "foo-2", "foo-1-2", ""} {
		if !a.has(id) {
			t.Errorf("no id %q of %v", id, a.slugs)
		}
	}
	if len(a.slugs) != 6 {
		t.Errorf("%v", a.slugs)
	}
	for text, want := range map[string][2]string{"A {#b}": {"A", "b"}, "A {#b .c} ": {"A", "b"}, "A {b}": {"A {b}", ""}, "A {#b} c": {"A {#b} c", ""}} {
		if rest, id := cutID(text); rest != want[0] || id != want[1] {
			t.Errorf("%q: %q, %q", text, rest, id)
		}
	}
}

// The position of a reference is that of its target, even where goldmark joined the text.
func TestPlaces(t *testing.T) {
	source := "[a](one.md) [b](<two two.md>)\n\n>\t[c](three.md)\n\n-\ta\n\n \t[d](four.md)\n\n[e]:\n  five.md\n\n<a href=\"six.md\">\n\n`seven/x.md`, ``eight/x.md``, nine/x.md\n\n| a | b |\n|-|-|\n| \\| [f](ten.md) | `eleven/x.md` |\n"
	s := parse(newParser(), "x.md", []byte(source))
	var got []string
	for _, r := range s.references {
		got = append(got, source[r.start:r.end])
	}
	want := []string{"one.md", "two two.md", "three.md", "four.md", "five.md", "six.md", "seven/x.md", "eight/x.md", "nine/x.md", "ten.md", "eleven/x.md"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// The references of any document are in order, have correct line numbers and occur in its
// text.
func FuzzParse(f *testing.F) {
	awkward, err := os.ReadFile(filepath.Join("testdata", "awkward.txtar"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(awkward)
	for _, piece := range bytes.SplitAfter(awkward, []byte("\n\n")) {
		f.Add(piece)
	}
	for _, text := range patterns {
		f.Add([]byte(text(200)))
	}
	p := newParser()
	f.Fuzz(func(t *testing.T, source []byte) {
		if len(source) > 4<<10 || tooComplex(source) > 0 {
			return
		}
		s := parse(p, "docs/x.md", bytes.Clone(source))
		last := 0
		for i, r := range s.references {
			if r.start < last || r.end < r.start || r.end > len(source) {
				t.Fatalf("%+v after %d in %d bytes", r, last, len(source))
			}
			last = r.start
			if line := 1 + bytes.Count(source[:r.start], []byte("\n")); r.Line != line {
				t.Fatalf("%+v is in line %d", r, line)
			}
			r.to = targetOf(r.Reference)
			for _, written := range r.candidates() {
				if at, ok := joined(r.File, written); ok && strings.HasPrefix(at+"/", "../") {
					t.Fatalf("%q leaves the root: %q", written, at)
				}
			}
			r.moved, r.problem = "archive/y.md", Missing
			if fix := r.fix(); fix != nil && i < 3 {
				w := &rewriter{parser: p}
				if content, ok := w.with(source, s.references, []Fix{*fix}); ok && !bytes.Contains(content, []byte(fix.New)) {
					t.Fatalf("%+v is not in %q", fix, content)
				}
			}
		}
	})
}

// A check of arbitrary documents neither panics nor fails.
func FuzzCheck(f *testing.F) {
	f.Add("# A\n[x](b.md#a)", "[y](README.md#a)\n")
	f.Add("[a](<%zz>) ![b](%00) [c](\x00) [d](a/../../b) [e](//x) [f](?x#y)", "\xff")
	f.Fuzz(func(t *testing.T, readme, other string) {
		if len(readme)+len(other) > 1<<14 {
			return
		}
		dir := t.TempDir()
		for name, text := range map[string]string{"README.md": readme, "b.md": other} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		rep, err := Check(t.Context(), dir, Options{Documents: []string{"README.md"}, Deep: true, KeepValid: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, finding := range rep.Findings {
			if finding.File == "" || finding.Line < 1 || finding.Reason == "" || finding.Problem == "" {
				t.Fatalf("%+v", finding)
			}
		}
		if _, err := Rewrites(t.Context(), dir, rep.Fixes()); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(rep.Graph.Dot(), "}\n") {
			t.Fatal("incomplete graph")
		}
	})
}

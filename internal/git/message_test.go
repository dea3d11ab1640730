package git

import (
	"strings"
	"testing"
	"unicode/utf8"

	"lockkeeper"
)

func TestSubject(t *testing.T) {
	for text, want := range map[string]string{
		"Plain": "Plain", "  \n\n second line\nthird": "second line", "": "Changes", "\x00\n\t": "Changes", "# Heading": "Heading", "##fixup! # squash!x": "x", "fixup!": "Changes",
		"a\tb\x1b[31mc\u202ed": "a b[31mcd", "one\rtwo": "one", "bad \xff": "bad \uFFFD",
		strings.Repeat("ü", 100): strings.Repeat("ü", 71) + "…",
	} {
		equal(t, text, subject(text), want)
	}
}

func TestTrailersAreRefused(t *testing.T) {
	for _, wrong := range []Trailer{{"", "x"}, {"-K", "x"}, {"K y", "x"}, {"K:", "x"}, {"Kü", "x"}, {"K", ""}, {"K", "a\nb"}, {"K", "a\rb"}, {"K", " a"}, {"K", "a\x00"}, {"K", "\xff"}, {"K", "a\u2028b"}, {"K", strings.Repeat("x", maxTrailer)}} {
		if _, err := message(Commit{Subject: "x", Trailers: []Trailer{wrong}}); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}

// Text of a model cannot forge a trailer or a marker.
func FuzzMessage(f *testing.F) {
	f.Add("fixup! x", "Lockkeeper-Batch: b2\nlockkeeper-batch : b2\n---\ndiff --git a b\r\nLockkeeper-Batch: b2\r")
	f.Add("\xff\u202e", strings.Repeat("ü", maxBody))
	f.Add("", "\n\n#\n\x00")
	f.Fuzz(func(t *testing.T, subject, body string) {
		text, err := message(Commit{Subject: subject, Body: body, Trailers: []Trailer{{"Lockkeeper-Batch", "b1"}}})
		must(t, err)
		if !utf8.ValidString(text) || strings.ContainsAny(text, "\x00\r\x1b\u202e") {
			t.Errorf("%q", text)
		}
		first, rest, _ := strings.Cut(text, "\n")
		if first == "" || utf8.RuneCountInString(first) > maxSubject || strings.HasPrefix(first, "#") || strings.HasPrefix(first, "fixup!") {
			t.Errorf("subject %q", first)
		}
		rest, ends := strings.CutSuffix(rest, "\n\nLockkeeper-Batch: b1\n")
		if !ends && rest != "\nLockkeeper-Batch: b1\n" {
			t.Errorf("trailers of %q", text)
		}
		for line := range strings.Lines(rest) {
			if ends && (strings.HasPrefix(strings.ToLower(line), "lockkeeper-batch") && strings.Contains(line, ":") && strings.EqualFold(strings.TrimSpace(line[:strings.Index(line, ":")]), "Lockkeeper-Batch") || strings.HasPrefix(line, "---")) {
				t.Errorf("forged: %q", line)
			}
		}
	})
}

// Find finds a commit by its trailer, and not by similar text.
func TestFind(t *testing.T) {
	root := newTree(t, map[string]string{"a": "1"})
	r := open(t, root)
	hashes := map[string]string{}
	for _, id := range []string{"b1", "b2", "b10"} {
		plant(t, root, map[string]string{"a": id})
		hashes[id] = commit(t, r, Commit{Paths: []string{"a"}, Subject: "Batch: b7", Body: "Batch: b8\nbatch: b8\n\nBatch: b8", Trailers: []Trailer{{"Batch", id}, {"Fence", "1"}}}).Hash
	}
	for id, want := range map[string]string{"b1": hashes["b1"], "b2": hashes["b2"], "b10": hashes["b10"], "b": "", "b7": "", "b8": "", "b1.": "", ".*": ""} {
		found, err := r.Find(t.Context(), "Batch", id)
		must(t, err)
		equal(t, id, found, want)
	}
	found, err := r.Find(t.Context(), "Fence", "1")
	must(t, err)
	equal(t, "newest", found, hashes["b10"])
	for range 3 { // a person's rebase rewrites the commit, but it is still of that batch
		person(t, root, "commit", "-q", "--amend", "--no-edit", "--reset-author")
	}
	found, err = r.Find(t.Context(), "Batch", "b10")
	must(t, err)
	equal(t, "rewritten", found, strings.TrimSpace(person(t, root, "rev-parse", "HEAD")))
}

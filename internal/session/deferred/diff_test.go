package deferred

import (
	"strings"
	"testing"
)

const base = "one\ntwo\nthree\nfour\nfive\n"

func TestApply(t *testing.T) {
	patch := "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n"
	for name, test := range map[string]struct {
		patch, content, want string
		fits                 bool
		exact                bool
	}{
		"as it was":          {patch, base, "one\nTWO\nthree\nfour\nfive\n", true, false},
		"further down":       {patch, "zero\n" + base, "zero\none\nTWO\nthree\nfour\nfive\n", true, false},
		"in two places":      {patch, "zero\n" + base + base, "", false, false},
		"its lines are gone": {patch, "one\n2\nthree\n", "", false, false},
		"done already":       {patch, "one\nTWO\nthree\n", "", false, false},
		"two hunks":          {"@@ -1 +1,2 @@\n one\n+one and a half\n@@ -5 +6 @@\n-five\n+FIVE\n", base, "one\none and a half\ntwo\nthree\nfour\nFIVE\n", true, false},
		"an added line":      {"@@ -2,0 +3 @@\n+between\n", base, "one\ntwo\nbetween\nthree\nfour\nfive\n", true, true},
		"added somewhere":    {"@@ -2,0 +3 @@\n+between\n", base, "", false, false},
		"one of the same":    {"@@ -3 +3 @@\n-x\n+Y\n", "a\nb\nx\nx\nx\n", "", false, false},
		"that very one":      {"@@ -3 +3 @@\n-x\n+Y\n", "a\nb\nx\nx\nx\n", "a\nb\nY\nx\nx\n", true, true},
		"without an end":     {"@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+y\n\\ No newline at end of file\n", "x", "y", true, false},
		"with CRLF":          {"--- a/f\r\n+++ b/f\r\n@@ -1 +1 @@\r\n-x\r\n+y\r\n", "x\r\n", "y\r\n", true, false},
		"a new file":         {"--- /dev/null\n+++ b/f\n@@ -0,0 +1,2 @@\n+a\n+b\n", "", "a\nb\n", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := parseDiff(test.patch)
			if err != nil {
				t.Fatal(err)
			}
			if got, fits := d.apply(test.content, test.exact); fits != test.fits || fits && got != test.want {
				t.Errorf("%v\n%s", fits, got)
			}
		})
	}
}

func TestBadDiff(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "no hunk",
		"hello\n":                   "no hunk",
		"@@ -1,3 +1,3 @@\n one\n":   "miscounts lines",
		"@@ what @@\n":              "header of a hunk",
		"@@ -1,2 +1,2 @@\n a\n!b\n": "invalid line operation",
		"--- a\n+++ a\n@@ -1 +1 @@\n-a\n+b\n--- c\n+++ c\n@@ -1 +1 @@\n-a\n+b\n": "2 files",
	} {
		if _, err := parseDiff(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func FuzzDiff(f *testing.F) {
	f.Add("@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n", base)
	f.Fuzz(func(t *testing.T, patch, content string) {
		if d, err := parseDiff(patch); err == nil {
			d.apply(content, true)
			d.apply(content, false)
		}
	})
}

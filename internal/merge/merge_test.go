package merge

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestThreeWay(t *testing.T) {
	const base = "1\n2\n3\n4\n5\n6\n"
	for name, c := range map[string]struct{ kept, now, want string }{
		"apart":               {"1\nkept\n2\n3\n4\n5\n6\n", "1\n2\n3\n4\n5\nfive\n6\n", "1\nkept\n2\n3\n4\n5\nfive\n6\n"},
		"only kept":           {"1\n2\n3\n4\n5\n", base, "1\n2\n3\n4\n5\n"},
		"only now":            {base, "0\n" + base, "0\n" + base},
		"the same change":     {"1\nx\n3\n4\n5\n6\n", "1\nx\n3\n4\n5\nsix\n", "1\nx\n3\n4\n5\nsix\n"},
		"without a last line": {"1\n2\n3\n4\n5\n6\n7", "0\n1\n2\n3\n4\n5\n6\n", "0\n1\n2\n3\n4\n5\n6\n7"},
		"both removed":        {"1\n2\n5\n6\n", "1\n2\n5\n6\n", "1\n2\n5\n6\n"},
	} {
		if r := ThreeWay(base, c.kept, c.now); r.Text != c.want || r.Conflicts != nil {
			t.Errorf("%s: %q with %v, want %q", name, r.Text, r.Conflicts, c.want)
		}
	}
}

func TestConflicts(t *testing.T) {
	r := ThreeWay("a\nb\nc\nd\n", "a\nkept\nc\nd\n", "new\na\nnow\nc\nd\n")
	if len(r.Conflicts) != 1 || r.Conflicts[0] != (Conflict{Line: 3, Base: "b\n", Kept: "kept\n", Now: "now\n"}) {
		t.Errorf("%+v", r.Conflicts)
	}
	want := "new\na\n" + markNow + "\nnow\n" + markBase + "\nb\n" + markKept + "\nkept\n" + markEnd + "\nc\nd\n"
	if r.Text != want || !HasMarkers(r.Text) || HasMarkers("a\n=======\n") {
		t.Errorf("%q, want %q", r.Text, want)
	}
	for name, c := range map[string]struct{ base, kept, now string }{
		"both insert at one place": {"a\nb\n", "a\nx\nb\n", "a\ny\nb\n"},
		"lines next to each other": {"a\nb\nc\n", "x\nb\nc\n", "a\ny\nc\n"},
		"both create":              {"", "x\n", "y\n"},
		"one removes, one changes": {"a\nb\nc\n", "a\nc\n", "a\nB\nc\n"},
	} {
		if r := ThreeWay(c.base, c.kept, c.now); len(r.Conflicts) != 1 {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if r := TwoWay("a\nb\nc\nd\n", "a\nx\nc\nd\ny\n"); len(r.Conflicts) != 2 || r.Conflicts[0].Now != "x\n" || r.Conflicts[1].Line != 5 {
		t.Errorf("%+v", r)
	}
}

func TestCount(t *testing.T) {
	for want, c := range map[string][2]string{"adds 2 lines": {"a\n", "a\nb\nc"}, "removes 1 line": {"a\nb\n", "a\n"}, "adds 1 line, removes 2": {"a\nb\nc\n", "x\nc\n"}, "adds 0 lines": {"a", "a"}} {
		if got := Count(c[0], c[1]).String(); got != want {
			t.Errorf("%q: %s, want %s", c, got, want)
		}
	}
}

func TestLineEnds(t *testing.T) {
	conflict := ThreeWay("a\r\nb\r\n", "a\r\nx\r\n", "a\r\ny\r\n").Text
	for text, want := range map[string][2]bool{"": {false, true}, "a\nb": {false, true}, "a\r\nb": {true, true}, "a\r\nb\n": {true, false},
		"a\rb\n": {false, false}, "a\nb\r": {false, false}, "a\r\r\n": {true, false}, conflict: {true, true}} {
		if crlf, same := LineEnds(text); crlf != want[0] || same != want[1] {
			t.Errorf("%q: %t, %t", text, crlf, same)
		}
	}
}

// A merge is symmetric, keeps what one side leaves alone, and loses nothing of a conflict.
func TestMergeIsSymmetricAndKeepsBothSides(t *testing.T) {
	text := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a\n", "b\n", "c\n", "d\n"}), 0, 8).Draw(t, "lines"), "")
	})
	rapid.Check(t, func(t *rapid.T) {
		base, kept, now := text.Draw(t, "base"), text.Draw(t, "kept"), text.Draw(t, "now")
		one, other := ThreeWay(base, kept, now), ThreeWay(base, now, kept)
		if len(one.Conflicts) != len(other.Conflicts) || one.Conflicts == nil && one.Text != other.Text {
			t.Fatalf("%q and %q", one.Text, other.Text)
		}
		if r := ThreeWay(base, kept, base); r.Text != kept || r.Conflicts != nil {
			t.Fatalf("alone: %q", r.Text)
		}
		if r := ThreeWay(base, kept, kept); r.Text != kept || r.Conflicts != nil {
			t.Fatalf("the same: %q", r.Text)
		}
		for _, c := range one.Conflicts {
			if !strings.Contains(one.Text, c.Kept) || !strings.Contains(one.Text, c.Now) {
				t.Fatalf("%+v is lost in %q", c, one.Text)
			}
		}
	})
}

func TestMergesAsGit(t *testing.T) {
	const base = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"
	kept, now := strings.Replace(base, "two\n", "two\nkept\n", 1), strings.Replace(base, "six\n", "6\n", 1)+"eight\n"
	dir := t.TempDir()
	for name, text := range map[string]string{"base": base, "kept": kept, "now": now} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("git", "merge-file", "-p", "kept", "base", "now")
	cmd.Dir = dir
	out, err := cmd.Output()
	if r := ThreeWay(base, kept, now); err != nil || r.Text != string(out) {
		t.Errorf("%q, git: %q, %v", r.Text, out, err)
	}
}

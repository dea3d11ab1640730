package flow

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// shows: SW-9 CF-22
func TestTargets(t *testing.T) {
	got := Aggregate([]ScreenDoc{
		{WriteTargets: []string{"app/b.rb", "./app/a.rb"}},
		{WriteTargets: nil},
		{WriteTargets: []string{"app//a.rb", "app/views/", "../x", ""}},
	})
	if want := []string{"", "../x", "app/a.rb", "app/b.rb", "app/views/"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Targets(); got == nil || len(got) != 0 {
		t.Errorf("%#v", got)
	}
}

// The union is sorted, has each path once, and does not depend on the order of the lists.
//
// shows: SW-9
func TestTargetsAreAUnion(t *testing.T) {
	paths := rapid.SliceOf(rapid.SampledFrom([]string{"a", "./a", "a/b", "a//b", "c/", "c", "../x"}))
	rapid.Check(t, func(t *rapid.T) {
		a, b := paths.Draw(t, "a"), paths.Draw(t, "b")
		all := Targets(a, b)
		if !slices.Equal(all, Targets(b, a)) || !slices.Equal(all, Targets(all)) || !slices.IsSorted(all) || len(slices.Compact(slices.Clone(all))) != len(all) {
			t.Fatalf("%q and %q give %q", a, b, all)
		}
		for _, p := range append(a, b...) {
			if !slices.Contains(all, Targets([]string{p})[0]) {
				t.Fatalf("%q is lost from %q", p, all)
			}
		}
	})
}

// shows: SW-15 SW-68 PL-36
func TestWritable(t *testing.T) {
	for spelling, want := range map[string]string{
		"app/a.rb": "app/a.rb", "./app//a.rb": "app/a.rb", ".gitignore": ".gitignore", "ä/ö": "ä/ö", "a b": "a b", "..a": "..a",
	} {
		if got, err := writable(spelling); got != want || err != nil {
			t.Errorf("%q: %q, %v", spelling, got, err)
		}
	}
	for spelling, want := range map[string]string{
		"": "empty", " ": "empty", ".": "over-lock", "./": "over-lock", "app/": "over-lock", "app/.": "over-lock", "/a": "not relative", "a/..": "..", "..": "..",
		".git": "protected", ".git/x": "protected", "a/.git/x": "protected", ".lockkeeper/state.db": "protected", "a\x00b": "control", "a\nb": "control", "a\xffb": "control",
		strings.Repeat("a/", 3000) + "a": "over the limit",
	} {
		if got, err := writable(spelling); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q, %v", spelling, got, err)
		}
	}
}

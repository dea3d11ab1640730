package flows

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
)

func spelled(lines []editable) string {
	var b strings.Builder
	b.WriteString(editHelp)
	for _, l := range lines {
		b.WriteString(l.String() + "\n")
	}
	return b.String()
}

func sameLines(a, b []editable) bool {
	return slices.EqualFunc(a, b, func(a, b editable) bool {
		return a.decision == b.decision && slices.Equal(a.items, b.items) && a.rating == b.rating && a.words == b.words
	})
}

// Any descriptions and unit names survive a round trip through the file.
//
// shows: PL-19
func TestEditableRoundTrip(t *testing.T) {
	for seed := range uint64(300) {
		chance := rand.New(rand.NewPCG(seed, 0))
		text := func(most int) string {
			letters := []rune("abi1 \t\n\r#,/\\\"'%\x00\x1b\u00a0\u202e\u2028é😀todo")
			runes := make([]rune, chance.IntN(most))
			for i := range runes {
				runes[i] = letters[chance.IntN(len(letters))]
			}
			return string(runes)
		}
		ref := func() progress.Ref {
			return progress.Ref{Kind: progress.ItemKind, Unit: "u" + strings.ReplaceAll(text(6), "/", "_"), Item: "i" + string(rune('1'+chance.IntN(9)))}
		}
		var queue []progress.Decision
		for range chance.IntN(5) {
			queue = append(queue, progress.Decision{Ref: ref(), Facts: []progress.Fact{{Name: "description", Value: "x" + text(30)}, {Name: "impact", Value: "high"}, {Name: "effort", Value: "low"}}, Same: []progress.Ref{ref()}})
		}
		lines, apart := editableItems(queue)
		for i := range lines {
			lines[i].decision = []flow.Decision{"", flow.Todo, flow.Defer, flow.Reject}[chance.IntN(4)]
		}
		got, wrong := readEditable(spelled(lines))
		for _, w := range wrong {
			if !strings.Contains(w.reason, "already") { // a name that was drawn twice
				t.Fatalf("seed %d: %v in\n%s", seed, w, spelled(lines))
			}
		}
		if !sameLines(got, lines) {
			t.Fatalf("seed %d:\n%s\nreads as\n%s", seed, spelled(lines), spelled(got))
		}
		for _, g := range queue {
			if !slices.Contains(apart, g.Ref) && !slices.ContainsFunc(lines, func(l editable) bool { return slices.Contains(l.items, g.Ref) }) {
				t.Fatalf("seed %d: %q is nowhere", seed, g.Ref)
			}
		}
	}
}

func TestEditableWords(t *testing.T) {
	lines, wrong := readEditable("T blog/posts/i1,a/i2 high/low  Do  it\r\n\n  defer\tx/i1 low/low Later\nR y/i1 low/low No\n# todo z/i1 low/low Not this\no w/i1 low/low Open")
	if wrong != nil {
		t.Fatal(wrong)
	}
	want := []editable{
		{decision: flow.Todo, items: []progress.Ref{{Kind: progress.ItemKind, Unit: "blog/posts", Item: "i1"}, {Kind: progress.ItemKind, Unit: "a", Item: "i2"}}, rating: "high/low", words: "Do it"},
		{decision: flow.Defer, items: []progress.Ref{{Kind: progress.ItemKind, Unit: "x", Item: "i1"}}, rating: "low/low", words: "Later"},
		{decision: flow.Reject, items: []progress.Ref{{Kind: progress.ItemKind, Unit: "y", Item: "i1"}}, rating: "low/low", words: "No"},
		{items: []progress.Ref{{Kind: progress.ItemKind, Unit: "w", Item: "i1"}}, rating: "low/low", words: "Open"},
	}
	if !sameLines(lines, want) {
		t.Errorf("read %+v", lines)
	}
	for line, reason := range map[string]string{
		"maybe x/i1 low/low Words":             `"maybe" must be`,
		"to x/i1 low/low Words":                `"to" must be`,
		"todo":                                 "not the name of an item",
		"todo i1 low/low Words":                "not the name of an item",
		"todo x/i1, low/low Words":             "not the name of an item",
		"todo x/i1":                            "description of the item is missing",
		"todo x/i1 low/low":                    "description of the item is missing",
		"todo x/i1,x/i1 low/low Twice":         "x/i1 is already on line 1",
		"t x/i1 l/l One\nd x/i1 low/low Again": "x/i1 is already on line 1",
	} {
		if _, wrong := readEditable(line); len(wrong) != 1 || !strings.Contains(wrong[0].reason, reason) {
			t.Errorf("%q: %v, want %q", line, wrong, reason)
		}
	}
}

// A file that was read is written back with the same meaning, whatever it contains.
func FuzzEditable(f *testing.F) {
	f.Add(editHelp)
	f.Add("todo blog/posts/i3,blog/comments/i1  high/low  Load the authors\n")
	f.Add("t a/i1 x \x1b[31m\nd b/i1 y \xff\n")
	f.Add("todo a/i1 high/low \u00a0\u2028 w\u202e\r\n#\x00")
	f.Fuzz(func(t *testing.T, text string) {
		lines, wrong := readEditable(text)
		if len(wrong) > 0 {
			return
		}
		again, wrong := readEditable(spelled(lines))
		if wrong != nil || !sameLines(again, lines) {
			t.Errorf("%q reads as\n%s\nthat as\n%s, %v", text, spelled(lines), spelled(again), wrong)
		}
	})
}

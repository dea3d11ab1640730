package patch

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func since(t *testing.T, was, is string) []Change {
	t.Helper()
	return Parse(is).Since(Parse(was).Tree())
}

// Only changed elements are in the answer, and unchanged ones in them are only named.
func TestSince(t *testing.T) {
	const table = `<h2>Two</h2><table id="t"><tbody><tr id="a"><td>1</td></tr> <tr id="b"><td>2<br><input id="i" name="x"></td></tr></tbody></table>`
	for name, c := range map[string]struct {
		is   string
		want []Change
	}{
		"equal":      {table, nil},
		"one row":    {strings.Replace(table, "1", "3", 1), []Change{{"a", `<tr id="a"><td>3</td></tr>`}}},
		"around ids": {strings.Replace(table, "2<br>", "4<br>", 1), []Change{{"b", `<tr id="b"><td>4<br><input id="i" data-same></input></td></tr>`}}},
		"head":       {strings.Replace(table, "Two", "2", 1), []Change{{"", `<h2>2</h2><table id="t" data-same></table>`}}},
		"order": {strings.Replace(strings.Replace(strings.Replace(table, `"a"`, `"c"`, 1), `"b"`, `"a"`, 1), `"c"`, `"b"`, 1),
			[]Change{{"t", `<table id="t"><tbody><tr id="b"><td>1</td></tr> <tr id="a"><td>2<br><input id="i" data-same></input></td></tr></tbody></table>`}}},
		"new row": {strings.Replace(table, `<tr id="b">`, `<tr id="n"><td>0</td></tr><tr id="b">`, 1),
			[]Change{{"t", `<table id="t"><tbody><tr id="a" data-same></tr> <tr id="n"><td>0</td></tr><tr id="b" data-same></tr></tbody></table>`}}},
	} {
		c.want = slices.Clone(c.want)
		for i := range c.want { // a void element has no closing tag
			c.want[i].HTML = strings.ReplaceAll(c.want[i].HTML, "</input>", "")
		}
		if got := since(t, table, c.is); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%q\n%q", name, got, c.want)
		}
	}
}

// Text that looks like tags, and ids in values, are not taken for elements. An id that occurs twice
// does not count.
func TestWhatIsNoElement(t *testing.T) {
	for _, html := range []string{
		`<textarea name="x"><tr id="a"></textarea><p title=' id="q"' data-x="1 id=">3 < 4</p>`,
		`<p id="a">1</p><p id="a">2</p>`,
		`<p title="a > b id="">x</p>`,
		`</p></div>`,
		`<p`,
		``,
	} {
		if p := Parse(html); len(p.root.below) > 0 {
			t.Errorf("%s: %+v", html, p.root.below[0])
		}
		if changes := since(t, "<p>x</p>", html); len(changes) != 1 || changes[0].HTML != html {
			t.Errorf("%s: %q", html, changes)
		}
	}
	if id := idOf(`<p data-x=" id=&#34;b" id="a">`); id != "a" {
		t.Errorf("id %q", id)
	}
}

// Applying the changes to the earlier rendering gives the later one.
func TestRandomTrees(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	chance := rand.New(rand.NewPCG(seed, 0))
	for range 2_000 {
		was, is := Parse(randomPart(chance)), Parse(randomPart(chance))
		changes := is.Since(was.Tree())
		got := apply(was, changes)
		if got != is.HTML {
			t.Fatalf("%s\n%s\n%q\n%s", was.HTML, is.HTML, changes, got)
		}
		if (len(changes) == 0) != (was.Hash == is.Hash) {
			t.Fatalf("%d changes between %s and %s", len(changes), was.HTML, is.HTML)
		}
	}
}

func randomPart(chance *rand.Rand) string {
	ids := chance.Perm(6)
	var b strings.Builder
	var fill func(deep int)
	fill = func(deep int) {
		for range chance.IntN(4) {
			switch {
			case len(ids) > 0 && chance.IntN(2) == 0:
				id := ids[0]
				ids = ids[1:]
				fmt.Fprintf(&b, `<div id="n%d">`, id)
				if deep < 3 {
					fill(deep + 1)
				}
				b.WriteString("</div>")
			case deep < 3 && chance.IntN(3) == 0:
				b.WriteString("<p>")
				fill(deep + 1)
				b.WriteString("</p>")
			default:
				fmt.Fprint(&b, chance.IntN(2))
			}
		}
	}
	fill(0)
	return b.String()
}

// apply does what the page does, with strings.
func apply(was *Part, changes []Change) string {
	known := map[string]*node{}
	was.root.collect(known)
	filled := func(html string) string {
		for id, n := range known {
			html = strings.Replace(html, fmt.Sprintf(`<%s id="%s" data-same></%s>`, n.tag, id, n.tag), was.HTML[n.from:n.to], 1)
		}
		return html
	}
	got := was.HTML
	for _, c := range changes {
		if c.ID == "" {
			return filled(c.HTML)
		}
		n := known[c.ID]
		got = strings.Replace(got, was.HTML[n.from:n.to], filled(c.HTML), 1)
	}
	return got
}

// A Memory forgets the oldest renderings.
func TestMemory(t *testing.T) {
	var m Memory
	first := Parse("0")
	for i := range remembered + 1 {
		p := Parse(fmt.Sprint(i))
		m.Keep(p)
		m.Keep(p)
	}
	if m.Find(first.Hash) != nil || m.Find(Parse("1").Hash) == nil || len(m.order) != remembered {
		t.Errorf("%d renderings, the first is %v", len(m.order), m.Find(first.Hash))
	}
}

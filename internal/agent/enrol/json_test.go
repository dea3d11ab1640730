package enrol

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// In any text, also with comments, adding a value and removing it changes nothing else. Removing
// any child leaves all others.
func TestPutAndCut(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for range 3000 {
		text := draw(r, 0)
		for i, at := range containers(parse(t, text)) {
			key := ""
			if at.kind() == '{' {
				key = "ours"
			}
			root := parse(t, text)
			grown, err := put(text, root, containers(root)[i], key, map[string]any{"x": []int{1}})
			if err != nil {
				t.Fatal(err)
			}
			root = parse(t, grown)
			here := containers(root)[i] // the added value comes after it in the order, or inside it
			shrunk := cut(grown, root, here, len(here.children())-1)
			if !reflect.DeepEqual(parse(t, shrunk).plain(), parse(t, text).plain()) {
				t.Fatalf("added and cut is not as before:\n%s\nwas\n%s", shrunk, text)
			}
			for k := range at.elements() {
				root := parse(t, text)
				less := cut(text, root, containers(root)[i], k)
				was, is := at.plain().([]any), containers(parse(t, less))[i].plain().([]any)
				if want := append(append([]any{}, was[:k]...), was[k+1:]...); !reflect.DeepEqual(is, want) {
					t.Fatalf("cut %d: %v, want %v", k, is, want)
				}
			}
		}
	}
}

func parse(t *testing.T, text string) *node {
	t.Helper()
	n, err := parseJSON(text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return n
}

// containers lists all objects and arrays, in order.
func containers(n *node) (list []*node) {
	if n.kind() != '{' && n.kind() != '[' {
		return nil
	}
	list = append(list, n)
	for _, c := range n.children() {
		list = append(list, containers(c.value)...)
	}
	return list
}

// draw returns a random text.
func draw(r *rand.Rand, depth int) string {
	gap := func() string {
		return []string{"", " ", "\n  ", "\r\n\t", " // note, \"x\": {\n", " /* a, [b] */ ", "\n\n"}[r.IntN(7)]
	}
	kind := r.IntN(6)
	if depth == 0 {
		kind %= 2
	}
	if depth > 3 && kind < 2 {
		kind = 5
	}
	switch kind {
	case 0, 1:
		var parts []string
		for i := range r.IntN(4) {
			part := gap() + draw(r, depth+1) + gap()
			if kind == 0 {
				part = gap() + fmt.Sprintf("%q", fmt.Sprint("k", i)) + gap() + ":" + part
			}
			parts = append(parts, part)
		}
		return []string{"{", "["}[kind] + strings.Join(parts, ",") + gap() + []string{"}", "]"}[kind]
	case 2:
		return `"a // \" , ] } b"`
	case 3:
		return "-1.5e+3"
	}
	return []string{"true", "null"}[kind-4]
}

// Without comments, the parser accepts exactly what encoding/json accepts.
func FuzzParse(f *testing.F) {
	for _, text := range []string{`{}`, `{"a":[1,2,{"b":null}]}`, `[1,]`, `{"a" 1}`, "\ufeff{}", `"\u00e9"`, `{"a":tru}`, "[1e5, -0]"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := parseJSON(text)
		if strings.Contains(text, "/") || strings.HasPrefix(text, "\ufeff") {
			return
		}
		var want any
		wrong := json.Unmarshal([]byte(text), &want)
		if (err == nil) != (wrong == nil) && !strings.Contains(fmt.Sprint(err), "more than") {
			t.Fatalf("%q: %v, and encoding/json %v", text, err, wrong)
		}
		if err == nil && !reflect.DeepEqual(n.plain(), want) {
			t.Fatalf("%q: %v, and encoding/json %v", text, n.plain(), want)
		}
	})
}

package enrol

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// Whatever is in a text, comments and all, adding a value and cutting it out again changes
// nothing else, and cutting any child leaves all others.
func TestPutAndCut(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for range 3000 {
		text := draw(r, 0)
		root, err := parseJSON(text)
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		for _, at := range containers(root) {
			key := ""
			if at.kind == '{' {
				key = "ours"
			}
			grown, err := put(text, root, at, key, map[string]any{"x": []int{1}})
			if err != nil {
				t.Fatal(err)
			}
			again, err := parseJSON(grown)
			if err != nil {
				t.Fatalf("%v after adding to\n%s\nas\n%s", err, text, grown)
			}
			here := containerAt(again, at, root)
			shrunk, err := parseJSON(cut(grown, here, len(here.spans())-1))
			if err != nil || !reflect.DeepEqual(shrunk.plain(), root.plain()) {
				t.Fatalf("%v: added and cut is not as before:\n%s\nwas\n%s", err, cut(grown, here, len(here.spans())-1), text)
			}
			for i := range at.spans() {
				if at.kind != '[' {
					continue
				}
				less, err := parseJSON(cut(text, at, i))
				if err != nil {
					t.Fatalf("%v after cutting %d of\n%s\nas\n%s", err, i, text, cut(text, at, i))
				}
				was, is := at.plain().([]any), containerAt(less, at, root).plain().([]any)
				if want := append(append([]any{}, was[:i]...), was[i+1:]...); !reflect.DeepEqual(is, want) {
					t.Fatalf("cut %d: %v, want %v", i, is, want)
				}
			}
		}
	}
}

// containers are all objects and arrays, in order.
func containers(n *node) (list []*node) {
	if n.kind == 0 {
		return nil
	}
	list = append(list, n)
	for _, m := range n.members {
		list = append(list, containers(m.value)...)
	}
	for _, e := range n.elements {
		list = append(list, containers(e)...)
	}
	return list
}

// containerAt finds in another text the container that stands where at does. What was added
// or cut comes after it in the order, or inside of it.
func containerAt(other, at, root *node) *node {
	for i, n := range containers(root) {
		if n == at {
			return containers(other)[i]
		}
	}
	return nil
}

// draw makes a text.
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

// What the reader takes for JSON is what encoding/json does, where no comments are.
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
		if (err == nil) != (wrong == nil) && !strings.Contains(fmt.Sprint(err), "nested") {
			t.Fatalf("%q: %v, and encoding/json %v", text, err, wrong)
		}
		if err == nil && !reflect.DeepEqual(n.plain(), want) {
			t.Fatalf("%q: %v, and encoding/json %v", text, n.plain(), want)
		}
	})
}

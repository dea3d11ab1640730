package jsonform

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// published returns the published schemas, and one with the keywords they do not use.
func published(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "docs", "schemas", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no schemas: %v", err)
	}
	set := map[string][]byte{"odd": []byte(`{"type":["object","null"],"required":["a","b"],"additionalProperties":true,"properties":{
		"a":{"type":["string","integer"],"enum":["x","yy",""]},"b":{},"c":{"type":"array","minItems":2,"items":{"type":"number"}},
		"d":{"minItems":1,"pattern":"^x","required":["q"]},"e":{"type":"boolean"}}}`)}
	for _, file := range files {
		if set[filepath.Base(file)], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	return set
}

// A drawer generates random values that match a schema, or almost match it if careless.
type drawer struct {
	*rand.Rand
	careless bool
}

// slips reports whether to make a mistake now.
func (d drawer) slips() bool { return d.careless && d.IntN(12) == 0 }

func (d drawer) value(schema any) any {
	s, _ := schema.(map[string]any)
	if d.slips() {
		return d.anything()
	}
	if list, ok := s["enum"].([]any); ok && len(list) > 0 && !d.slips() {
		return list[d.IntN(len(list))]
	}
	typ, _ := s["type"].(string)
	if list, ok := s["type"].([]any); ok {
		typ, _ = list[d.IntN(len(list))].(string)
	}
	switch typ {
	case "null":
		return nil
	case "object":
		return d.object(s)
	case "array":
		list, least := []any{}, int64(0)
		if n, ok := s["minItems"].(json.Number); ok && !d.slips() {
			least, _ = n.Int64()
		}
		for range max(d.Int64N(3), least) {
			list = append(list, d.value(s["items"]))
		}
		return list
	case "string":
		words := []string{"a", "", "x1", strings.Repeat("0f", 32), "nothing", "file 0644 " + strings.Repeat("ab", 32), "2026-01-02T03:04:05Z", " ", "ü\n"}
		if pattern, ok := s["pattern"].(string); ok && !d.slips() {
			words = slices.DeleteFunc(words, func(w string) bool { return !regexp.MustCompile(pattern).MatchString(w) })
		}
		return words[d.IntN(len(words))]
	case "integer":
		return d.IntN(5) - 2
	case "number":
		return float64(d.IntN(9)) / 2
	case "boolean":
		return d.IntN(2) == 0
	}
	return d.anything()
}

func (d drawer) object(s map[string]any) any {
	properties, _ := s["properties"].(map[string]any)
	object := map[string]any{}
	for name, sub := range properties {
		if !d.slips() {
			object[name] = d.value(sub)
		}
	}
	if d.slips() {
		object["more"] = 1
	}
	return object
}

func (d drawer) anything() any {
	all := []any{nil, true, 7, 1.5, "text", []any{}, []any{nil, "x"}, map[string]any{}, map[string]any{"q": 1}}
	return all[d.IntN(len(all))]
}

// A form accepts exactly what a full JSON Schema validator accepts.
//
// shows: PL-85 PL-95
func TestJudgesAsAnotherValidator(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	d := drawer{Rand: rand.New(rand.NewPCG(seed, 1))}
	rounds := 60
	if more, err := strconv.Atoi(os.Getenv("LOCKKEEPER_TORTURE")); err == nil && more > 1 {
		rounds *= more
	}
	for name, text := range published(t) {
		form, err := Parse(text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		c := jsonschema.NewCompiler()
		if err := c.AddResource("schema:x", schema); err != nil {
			t.Fatal(err)
		}
		other := c.MustCompile("schema:x")
		fitting := 0
		for n := range rounds {
			d.careless = n%2 == 0
			text, err := json.Marshal(d.value(schema))
			if err != nil {
				t.Fatal(err)
			}
			value, err := Value(text)
			if err != nil {
				t.Fatal(err)
			}
			fault, want := form.Check(value), other.Validate(value)
			if (fault == nil) != (want == nil) {
				t.Fatalf("%s: %s: %+v, but the other validator says %v", name, text, fault, want)
			}
			if fault == nil {
				fitting++
			}
		}
		if fitting == 0 || fitting == rounds {
			t.Errorf("%s: %d of %d match, so nothing is compared", name, fitting, rounds)
		}
	}
}

func TestFaults(t *testing.T) {
	form, err := Parse([]byte(`{"type":"object","required":["a","b"],"additionalProperties":false,"properties":{
		"a":{"type":"integer"},"b":{"type":"array","minItems":1,"items":{"type":"object","properties":{"c":{"type":"string","pattern":"^x"},"d":{"enum":["p","q"]}}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]Fault{
		`[]`:                                {Reason: "got array, want object"},
		`{}`:                                {Reason: "missing property 'a', 'b'", Missing: []string{"a", "b"}},
		`{"a":1,"b":[{}],"z":1,"y":1}`:      {Reason: "additional properties 'y', 'z' not allowed", Unknown: []string{"y", "z"}},
		`{"a":"1","b":[{}],"z":1}`:          {Path: []string{"a"}, Reason: "got string, want integer"},
		`{"a":1.5,"b":[{}]}`:                {Path: []string{"a"}, Reason: "got number, want integer"},
		`{"a":1e99999999999,"b":[{}]}`:      {Path: []string{"a"}, Reason: "got number, want integer"},
		`{"a":1,"b":[]}`:                    {Path: []string{"b"}, Reason: "minItems: got 0, want 1"},
		`{"a":1,"b":[{},{"c":"y\"'"}]}`:     {Path: []string{"b", "1", "c"}, Reason: `'y"'' does not match pattern '^x'`},
		`{"a":1,"b":[{"d":"r","c":"xyz"}]}`: {Path: []string{"b", "0", "d"}, Reason: "value must be one of 'p', 'q'"},
	} {
		value, err := Value([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		for range 20 { // always the same fault
			got := form.Check(value)
			if got == nil || !slices.Equal(got.Path, want.Path) || got.Reason != want.Reason || !slices.Equal(got.Unknown, want.Unknown) || !slices.Equal(got.Missing, want.Missing) {
				t.Fatalf("%s: %+v, want %+v", text, got, want)
			}
		}
	}
}

// A schema with unsupported keywords is refused.
func TestSchemasAreUnderstoodOrRefused(t *testing.T) {
	for _, text := range []string{``, `{`, `7`, `true`, `[]`, `{"$ref":"https://example.org/x.json"}`, `{"type":"wrong"}`, `{"type":["string","wrong"]}`, `{"type":1}`,
		`{"type":null}`, `{"enum":[1]}`, `{"pattern":"("}`, `{"properties":{"a":{"maxLength":1}}}`, `{"items":{"anyOf":[]}}`, `{"items":false}`,
		`{"additionalProperties":{}}`, `{"minItems":"1"}`, `{"required":"a"}`, `{"Type":"string"}`} {
		if f, err := Parse([]byte(text)); err == nil {
			t.Errorf("%s was parsed as %+v", text, f)
		}
	}
	for _, text := range []string{`{} {}`, `{}]`, ``, `{`} {
		if v, err := Value([]byte(text)); err == nil {
			t.Errorf("%s was parsed as %v", text, v)
		}
	}
}

package flow

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

var update = flag.Bool("update", false, "rewrite the published schemas and the golden prompts")

var published = filepath.Join("..", "..", "docs", "schemas")

// shows: PL-95 SW-67
func TestSchemasArePublished(t *testing.T) {
	if *update {
		if err := os.MkdirAll(published, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range schemas() {
			if err := os.WriteFile(filepath.Join(published, name), text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	entries, err := os.ReadDir(published)
	if err != nil {
		t.Fatalf("%v; next: go generate ./internal/flow", err)
	}
	var there []string
	for _, e := range entries {
		there = append(there, e.Name())
		text, err := os.ReadFile(filepath.Join(published, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(text, schemas()[e.Name()]) {
			t.Errorf("docs/schemas/%s is not what the package says; next: go generate ./internal/flow, and remove what is no schema any more", e.Name())
		}
	}
	if want := slices.Sorted(maps.Keys(schemas())); !slices.Equal(there, want) {
		t.Errorf("published are %v, want %v; next: go generate ./internal/flow", there, want)
	}
}

// Agents' programs take a schema as one argument and fetch nothing. So a schema is a small, plain
// object without references, even to its draft.
func TestAnswersAreCompleteInThemselves(t *testing.T) {
	for name := range answers() {
		text := AnswerSchema(name)
		var top struct {
			Type       string
			Additional *bool `json:"additionalProperties"`
		}
		if err := json.Unmarshal(text, &top); err != nil {
			t.Fatal(err)
		}
		if top.Type != "object" || top.Additional == nil || *top.Additional || bytes.Contains(text, []byte(`"$`)) || len(text) > 10_000 {
			t.Errorf("%s: %d bytes\n%s", name, len(text), text)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		c := jsonschema.NewCompiler()
		if err := c.AddResource("schema:a", doc); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Compile("schema:a"); err != nil {
			t.Error(err)
		}
	}
	if AnswerSchema("") != nil {
		t.Error("nothing is asked for, and there is a schema")
	}
	defer func() {
		if said, _ := recover().(string); !strings.Contains(said, "analysis, batches, explanation, extract") {
			t.Errorf("%q", said)
		}
	}()
	AnswerSchema("anlysis")
}

// types returns the Go types of the documents.
func types() map[string]reflect.Type {
	return map[string]reflect.Type{
		AnalysisFile: reflect.TypeFor[Analysis](), ExtractFile: reflect.TypeFor[Extract](), SynthesizeFile: reflect.TypeFor[Synthesis](),
		AuditFile: reflect.TypeFor[Audit](), DecisionsFile: reflect.TypeFor[Decisions](), BatchesFile: reflect.TypeFor[Plan](),
		ApplyFile: reflect.TypeFor[Applied](), TestFile: reflect.TypeFor[Checked](), "ci_results.json": reflect.TypeFor[Checked](),
		VerificationFile: reflect.TypeFor[Verification](), ReviewFile: reflect.TypeFor[Review](), LandedFile: reflect.TypeFor[Landed](),
		ScreenFile: reflect.TypeFor[ScreenDoc](), manifestFile: reflect.TypeFor[Manifest](),
	}
}

// A schema has exactly the members of its Go type, at every level.
//
// shows: PL-95
func TestSchemasAreTheTypes(t *testing.T) {
	for file, form := range documents() {
		typ, ok := types()[file]
		if !ok {
			t.Errorf("%s has no type", file)
			continue
		}
		got := members("", form)
		got = slices.DeleteFunc(got, func(m string) bool { return m == "/lockkeeper" })
		want := fields("", typ)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s:\nschema %v\ntype   %v", file, got, want)
		}
	}
}

func members(at string, part any) (names []string) {
	p, _ := part.(map[string]any)
	if f, ok := part.(form); ok {
		p = f
	}
	if items, ok := p["items"]; ok {
		names = append(names, members(at, items)...)
	}
	properties, _ := p["properties"].(map[string]any)
	for name, sub := range properties {
		names = append(append(names, at+"/"+name), members(at+"/"+name, sub)...)
	}
	return names
}

func fields(at string, typ reflect.Type) (names []string) {
	if typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice && typ.Elem().Kind() != reflect.Uint8 {
		return fields(at, typ.Elem())
	}
	if typ.Kind() != reflect.Struct || typ.PkgPath() != reflect.TypeFor[Plan]().PkgPath() {
		return nil
	}
	for i := range typ.NumField() {
		f := typ.Field(i)
		if f.Anonymous {
			names = append(names, fields(at, f.Type)...)
			continue
		}
		if !f.IsExported() { // not part of the document
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(append(names, at+"/"+name), fields(at+"/"+name, f.Type)...)
	}
	return names
}

// schemas returns the schemas of docs/schemas by file name: of all documents, agents' answers
// and the screen manifest.
func schemas() map[string][]byte {
	files := map[string][]byte{}
	for file, form := range documents() {
		files[strings.ReplaceAll(strings.TrimSuffix(file, ".json"), "/", "-")+".schema.json"] = form.document(file).text()
	}
	for name := range answers() {
		files["answer-"+name+".schema.json"] = AnswerSchema(name)
	}
	return files
}

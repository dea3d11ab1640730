package config

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

var update = flag.Bool("update", false, "rewrite the published schema and reference")

var schemaPath = filepath.Join("..", "..", "..", "docs", "lockkeeper.schema.json")

// schema generates the JSON schema of lockkeeper.yaml from the struct.
func schema() map[string]any {
	top := object("Configuration of Lockkeeper.")
	top["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	top["title"] = FileName
	for _, f := range fieldsOf(withRows()) {
		path := strings.Split(f.key, ".")
		in := top["properties"].(map[string]any)
		for depth, group := range path[:len(path)-1] {
			if in[group] == nil {
				doc := ""
				if depth == 0 {
					doc = groupDoc(group)
				}
				in[group] = object(doc)
			}
			in = in[group].(map[string]any)["properties"].(map[string]any)
		}
		in[path[len(path)-1]] = property(f)
		if f.also != "" {
			in[f.also] = property(f)
		}
	}
	for key := range tablesOf(Default()) {
		group := top["properties"].(map[string]any)[key].(map[string]any)
		group["additionalProperties"] = group["properties"].(map[string]any)[rowName]
		group["propertyNames"] = map[string]any{"pattern": nameRule}
		delete(group, "properties")
	}
	return top
}

// rowName is the placeholder for names in tables.
const rowName = "NAME"

// withRows returns the default configuration with a row in each table, so that the fields of a
// row are listed.
func withRows() *Config {
	c := Default()
	for _, t := range tablesOf(c) {
		t.add(rowName)
	}
	return c
}

// object returns the schema of an object or null. A heading whose lines are all comments is null.
func object(doc string) map[string]any {
	o := map[string]any{
		"type":                 []any{"object", "null"},
		"additionalProperties": false,
		"properties":           map[string]any{},
	}
	if doc != "" {
		o["description"] = doc
	}
	return o
}

func property(f field) map[string]any {
	p := map[string]any{"description": f.doc()}
	if shown := f.shown(); shown != "" {
		p["default"] = shown
	}
	switch {
	case f.isDuration():
		seconds := map[string]any{
			"type":    "integer",
			"minimum": (f.min + int64(time.Second) - 1) / int64(time.Second),
			"maximum": f.max / int64(time.Second),
		}
		p["anyOf"] = []any{seconds, map[string]any{"type": "string", "pattern": durationPattern}}
	case f.isList():
		p["type"] = "array"
		if !f.noneOK {
			p["minItems"] = 1
		}
		if f.value.Len() > 0 {
			p["default"] = f.value.Interface()
		}
		items := map[string]any{"type": "string", "minLength": 1}
		if f.form != "" {
			items["pattern"] = f.form
		}
		p["items"] = items
	case f.value.Kind() == reflect.String:
		p["type"] = "string"
		if f.enum != nil {
			p["enum"] = f.enum
		} else {
			p["minLength"] = 1
		}
		if f.form != "" {
			p["pattern"] = f.form
		}
	default:
		p["type"] = "integer"
		p["minimum"], p["maximum"], p["default"] = f.min, f.max, f.value.Int()
	}
	return p
}

func TestSchemaIsCurrent(t *testing.T) {
	var want bytes.Buffer
	enc := json.NewEncoder(&want)
	enc.SetIndent("", "  ")
	if err := enc.Encode(schema()); err != nil {
		t.Fatal(err)
	}
	published(t, schemaPath, want.Bytes())
}

// published compares a generated file with its expected content.
func published(t *testing.T, path string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what the struct says; next: go generate ./internal/project/config", path)
	}
}

// The published schema and the decoder agree about the shape of a file. Only the decoder refuses
// files whose meaning is invalid, which a schema cannot express.
func TestSchemaAgreesWithDecoder(t *testing.T) {
	const (
		good    = iota
		shape   // both refuse
		meaning // only the decoder refuses
	)
	compiled, err := jsonschema.NewCompiler().Compile(schemaPath)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]int{
		"":                           good,
		"# only a comment\n":         good,
		Sample():                     good,
		uncomment(Sample()):          good,
		"store: a.db":                good,
		"store: postgres://u:p@h/db": good,
		"lock_timeout: 90":           good,
		"lock_timeout: 90s":          good,
		"lock_timeout: \"90\"":       good,
		"lock_timeout: 1h30m":        good,
		"deployment: single-node":    good,
		"space: 1b4e28ba-2fa1-41d2-883f-0016d3cca427": good,
		"space: nonsense":                   shape,
		"events:":                           good,
		"policies: {agent: }":               good,
		"max_claude_concurrency: 1000":      good,
		"max_fix_attempts: 0":               good,
		"events: {max_rows: 1_000}":         good,
		"policies: {dal: {heartbeat: 1}}":   good,
		"policies: {dal: {grace: 0}}":       good,
		"sotre: a":                          shape,
		"maxGlobalJob: 3":                   shape,
		"store: 3":                          shape,
		"store: [a]":                        shape,
		"store:":                            shape,
		"store: \"\"":                       shape,
		"deployment: cloud":                 shape,
		"deployment: \"\"":                  shape,
		"lock_timeout: 1.5":                 shape,
		"lock_timeout: 1.5h":                shape,
		"lock_timeout: soon":                shape,
		"lock_timeout: -3":                  shape,
		"lock_timeout: -3s":                 shape,
		"lock_timeout: 0":                   shape,
		"lock_timeout: 604801":              shape,
		"lock_timeout: {s: 3}":              shape,
		"max_fix_attempts: \"2\"":           shape,
		"max_fix_attempts: true":            shape,
		"max_fix_attempts: -1":              shape,
		"max_fix_attempts: 101":             shape,
		"max_fix_attempts: 1.5":             shape,
		"max_fix_attempts:":                 shape,
		"max_claude_concurrency: 0":         shape,
		"events: 3":                         shape,
		"events: [a]":                       shape,
		"events: {colour: red}":             shape,
		"events: {max_rows: 10}":            shape,
		"policies: {person: {ttl: 3}}":      shape,
		"policies: {agent: {stale: reap}}":  shape,
		"policies: {agent: {ttl: 0}}":       shape,
		"policies: {agent: {ttl: 90000}}":   shape,
		"policies: {dal: {heartbeat: 0}}":   shape,
		"- a":                               shape,
		"just text":                         shape,
		"lock_timeout: 8d":                  meaning,
		"policies: {agent: {ttl: 10ms}}":    meaning,
		"policies: {agent: {ttl: 30s}}":     meaning,
		"store: mysql://h/db":               meaning,
		"deployment: multi-node":            meaning,
		"store: postgres://u:p@h:port/db":   meaning,
		"lock_timeout: 99999999999999999ms": meaning,

		"gate:":                                  good,
		"gate: {grant: optional}":                good,
		"gate: {allowed_write_paths: [.]}":       good,
		"gate: {allowed_write_paths: [a, ]}":     good,
		"gate:\n  allowed_write_paths:\n  - a\n": good,
		"gate: {grant: never}":                   shape,
		"gate: {allowed_write_paths: app}":       shape,
		"gate: {allowed_write_paths: []}":        shape,
		"gate: {allowed_write_paths: }":          shape,
		"gate: {allowed_write_paths: [a, 3]}":    shape,
		"gate: {allowed_write_paths: [[a]]}":     shape,
		"gate: {allowed_write_paths: [\"\"]}":    shape,
		"roots: [main, site-2]":                  good,
		"roots: []":                              shape,
		"roots: [\"a b\"]":                       shape,
		"gate: {allowed_write_paths: [../x]}":    meaning,

		"resources:":                           good,
		"operations: {}":                       good,
		"resources: {Style: }":                 good,
		"resources: {Style: {files: [a, b/]}}": good,
		"resources:\n  Chapter_{nn}:\n    files: ['Chapter_{nn}/']\n": good,
		"resources: {map: {node: 'project/{project}/map/{map}'}}":     good,
		"operations: {edit: {write: [map], prompt: 3}}":               good,
		"locks_file: .locks/locks.json":                               good,
		"resources: {Style: [a]}":                                     shape,
		"resources: {Style: {file: [a]}}":                             shape,
		"resources: {Style: {files: []}}":                             shape,
		"resources: {Style: {mode: upgradeable}}":                     shape,
		"resources: {a.b: {files: [a]}}":                              shape,
		"resources: {map: {node: project}}":                           shape,
		"resources: [a]":                                              shape,
		"operations: {edit: {approval: maybe}}":                       shape,
		"operations: {edit: {lock: [map]}}":                           shape,
		"resources: {Style: {files: [../a]}}":                         meaning,
		"locks_file: /tmp/locks.json":                                 meaning,
		"locks_file: README.md":                                       meaning,
		"locks_file: .git/locks.json":                                 meaning,
		"links: {ignore: []}":                                         good,
		"links: {exclude: []}":                                        shape,
		"gate: {allowed_write_paths: [/etc]}":                         meaning,
	}
	// For every field: a value of an impossible type, and values beyond its limits, if any.
	for _, f := range fieldsOf(withRows()) {
		cases[nest(f.key, "{x: y}")] = shape
		if !f.value.CanInt() {
			continue
		}
		cases[nest(f.key, "-1")] = shape
		if f.isDuration() {
			cases[nest(f.key, formatDuration(time.Duration(f.max)+time.Second))] = meaning
		} else {
			cases[nest(f.key, f.format(f.max))] = good
			cases[nest(f.key, f.format(f.max+1))] = shape
			cases[nest(f.key, f.format(f.min))] = good
			cases[nest(f.key, f.format(f.min-1))] = shape
		}
	}
	for text, want := range cases {
		_, decodeErr := load(t, text)
		var doc any
		if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		schemaErr := compiled.Validate(doc)
		if (decodeErr != nil) != (want != good) {
			t.Errorf("decoder, %q: %v", text, decodeErr)
		}
		if (schemaErr != nil) != (want == shape) {
			t.Errorf("schema, %q: %v", text, schemaErr)
		}
	}
}

// nest writes a dotted key with its value as a line of YAML.
func nest(key, value string) string {
	path := strings.Split(key, ".")
	return strings.Join(path, ": {") + ": " + value + strings.Repeat("}", len(path)-1)
}

package api

import (
	"cmp"
	"encoding"
	"encoding/json"
	"maps"
	"net/http"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"lockkeeper/internal/compat/lfs"
)

const mediaJSON = "application/json"

var wildcard = regexp.MustCompile(`\{([a-z_]+)(\.\.\.)?\}`)

// describe returns the OpenAPI document of a table of routes.
func describe(table []route, version string) ([]byte, error) {
	g := &schemas{components: map[string]schema{}}
	paths := map[string]map[string]any{}
	for i := range table {
		rt := &table[i]
		address := addressPattern(rt)
		if paths[address] == nil {
			paths[address] = map[string]any{}
		}
		paths[address][strings.ToLower(rt.method)] = g.operation(rt)
	}
	codes := map[string]int{}
	for code, status := range statuses {
		codes[string(code)] = status
	}
	return json.Marshal(map[string]any{
		"openapi": "3.1.0",
		"info": map[string]any{"title": "Lockkeeper", "version": version,
			"description": "Locks, queue, decisions and runs of one codebase. The dashboard, the Model Context Protocol and git-lfs use other formats. Roles: a viewer reads, an operator also decides and controls runs, an admin also force-releases locks of others; an agent acquires locks and writes under them. Every POST accepts an Idempotency-Key. Error codes and their statuses: " + listed(codes) + "."},
		"paths":      paths,
		"security":   []any{map[string]any{"token": []string{}}, map[string]any{"session": []string{}}},
		"components": map[string]any{"responses": g.failures(), "schemas": g.components, "securitySchemes": map[string]any{"token": schema{"type": "http", "scheme": "bearer"}, "session": schema{"type": "apiKey", "in": "cookie", "name": "lockkeeper"}}},
	})
}

// failures describes the error formats. Layers before the handlers answer with a Problem,
// except to git-lfs.
func (g *schemas) failures() map[failure]any {
	problem, text := g.of(reflect.TypeFor[Problem]()), schema{"type": "string"}
	message := schema{"type": "object", "required": []string{"message"}, "properties": map[string]any{"message": text}}
	said := func(by map[string]schema) map[string]any {
		all := map[string]any{}
		for media, s := range by {
			maps.Copy(all, content(media, s))
		}
		return map[string]any{"description": "An error.", "content": all}
	}
	return map[failure]any{
		failureProblem:  said(map[string]schema{mediaJSON: problem}),
		failurePage:     said(map[string]schema{mediaJSON: problem, mediaPage: text}),
		failureProtocol: said(map[string]schema{mediaJSON: problem, "text/plain": text}),
		failureLFS:      said(map[string]schema{mediaJSON: message, lfs.Media: message}),
	}
}

func listed(codes map[string]int) string {
	var list []string
	for _, code := range slices.Sorted(maps.Keys(codes)) {
		list = append(list, code+" "+strconv.Itoa(codes[code]))
	}
	return strings.Join(list, ", ")
}

func content(media string, s schema) map[string]any {
	return map[string]any{media: map[string]any{"schema": s}}
}

// addressPattern returns the address of a route in OpenAPI syntax.
func addressPattern(rt *route) string {
	return wildcard.ReplaceAllString(strings.TrimSuffix(rt.pattern, "{$}"), "{$1}")
}

func (g *schemas) operation(rt *route) map[string]any {
	op := map[string]any{"summary": rt.summary, "operationId": operationID(rt), "description": "Needs the role " + rt.need.String() + "."}
	if rt.open {
		op["description"], op["security"] = "Needs no token.", []any{}
	}
	if list := g.parameters(rt); len(list) > 0 {
		op["parameters"] = list
	}
	if rt.in != nil {
		op["requestBody"] = map[string]any{"content": content(mediaJSON, g.of(rt.in))}
	}
	responses := map[string]any{"default": map[string]any{"$ref": "#/components/responses/" + string(cmp.Or(rt.failure, failureProblem))}}
	for _, r := range rt.ways() {
		answer := map[string]any{"description": r.what}
		switch {
		case rt.out != nil:
			answer["content"] = content(r.media, g.of(rt.out))
		case strings.HasSuffix(r.media, "json"):
			answer["content"] = content(r.media, schema{"type": "object"})
		case r.media != "":
			answer["content"] = content(r.media, schema{"type": "string"})
		}
		responses[strconv.Itoa(r.status)] = answer
	}
	op["responses"] = responses
	return op
}

func (rt *route) ways() []reply {
	if len(rt.replies) > 0 {
		return rt.replies
	}
	return []reply{{http.StatusOK, cmp.Or(rt.media, mediaJSON), "Success."}}
}

var notWord = regexp.MustCompile(`[^A-Za-z0-9]+`)

// operationID names an operation for client generators.
func operationID(rt *route) string {
	return strings.Trim(strings.ToLower(rt.method)+"_"+strings.Trim(notWord.ReplaceAllString(rt.pattern, "_"), "_"), "_")
}

// parameters describes the path, query and header parameters of a route.
func (g *schemas) parameters(rt *route) (list []map[string]any) {
	for _, found := range wildcard.FindAllStringSubmatch(rt.pattern, -1) {
		p := map[string]any{"name": found[1], "in": "path", "required": true, "schema": schema{"type": "string"}}
		if found[2] != "" {
			p["description"] = "May contain slashes."
		}
		list = append(list, p)
	}
	if rt.method == http.MethodPost {
		list = append(list, map[string]any{"name": onceHeader, "in": "header", "schema": schema{"type": "string", "pattern": onceKey.String()},
			"description": "A repeated request with the same key and body runs once and gets the same answer."})
	}
	if rt.query == nil {
		return list
	}
	for _, f := range reflect.VisibleFields(rt.query) {
		if nameOf(f) == "" { // the field is an embedded struct, whose fields are listed instead
			continue
		}
		t := f.Type
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		p := map[string]any{"name": nameOf(f), "in": "query", "schema": g.of(t)}
		if doc := f.Tag.Get("doc"); doc != "" {
			p["description"] = doc
		}
		list = append(list, p)
	}
	return list
}

type schema = map[string]any

// schemas builds the JSON schemas of Go types. A named struct is described once, as a component that other
// schemas refer to.
type schemas struct{ components map[string]schema }

func (g *schemas) of(t reflect.Type) schema {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return schema{"type": "string", "format": "date-time"}
	case t.Kind() == reflect.Pointer:
		return schema{"anyOf": []schema{g.of(t.Elem()), {"type": "null"}}}
	case implements[json.Marshaler](t):
		if shown, ok := t.MethodByName("Shown"); ok {
			return g.of(shown.Type.Out(0)) // the type that the value is encoded as
		}
		return schema{}
	case implements[encoding.TextMarshaler](t):
		return schema{"type": "string"}
	}
	switch t.Kind() {
	case reflect.String:
		return schema{"type": "string"}
	case reflect.Bool:
		return schema{"type": "boolean"}
	case reflect.Float32, reflect.Float64:
		return schema{"type": "number"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return schema{"type": "integer"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return schema{"type": "integer", "minimum": 0}
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return schema{"type": []string{"string", "null"}, "contentEncoding": "base64"}
		}
		return schema{"type": []string{"array", "null"}, "items": g.of(t.Elem())}
	case reflect.Map:
		return schema{"type": []string{"object", "null"}, "additionalProperties": g.of(t.Elem())}
	case reflect.Struct:
		return g.structure(t)
	}
	return schema{}
}

func implements[I any](t reflect.Type) bool {
	want := reflect.TypeFor[I]()
	return t.Implements(want) || reflect.PointerTo(t).Implements(want)
}

// structure describes a struct. A named struct is described by a reference to its component.
func (g *schemas) structure(t reflect.Type) schema {
	if t.Name() == "" {
		return g.object(t)
	}
	name := path.Base(t.PkgPath()) + "." + t.Name()
	if _, known := g.components[name]; !known {
		g.components[name] = schema{} // a placeholder ends the recursion of a type that contains itself
		g.components[name] = g.object(t)
	}
	return schema{"$ref": "#/components/schemas/" + name}
}

func (g *schemas) object(t reflect.Type) schema {
	properties, required := map[string]any{}, []string{}
	g.fields(t, properties, &required, false)
	s := schema{"type": "object", "properties": properties}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// fields describes the fields of a structure. The fields of an embedded structure are promoted,
// unless the outer one has the same name. Those of an embedded pointer are optional.
func (g *schemas) fields(t reflect.Type, properties map[string]any, required *[]string, optional bool) {
	var embedded []reflect.StructField
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			embedded = append(embedded, f)
			continue
		case !f.IsExported() || name == "-":
			continue
		case name == "":
			name = f.Name
		}
		if _, hidden := properties[name]; hidden {
			continue
		}
		properties[name] = g.of(f.Type)
		if !optional && !strings.Contains(options, "omit") {
			*required = append(*required, name)
		}
	}
	for _, f := range embedded {
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner, optional = inner.Elem(), true
		}
		g.fields(inner, properties, required, optional)
	}
}

package api

import (
	"encoding"
	"encoding/json"
	"path"
	"reflect"
	"strings"
	"time"
)

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

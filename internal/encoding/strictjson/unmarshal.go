package strictjson

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// ErrMore reports that text follows the value.
var ErrMore = errors.New("there is more after the value")

// Unmarshal does the same as json.Unmarshal without its leniency. It refuses text that Check
// refuses, and members whose names differ from a field's only in case. If closed is set, it also
// refuses members that match no field.
func Unmarshal(text []byte, value any, closed bool) error {
	if err := check(text, reflect.TypeOf(value)); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if closed {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(value); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return ErrMore
	}
	return nil
}

// A shape describes the members that a Go type expects of an object or a list.
type shape struct {
	fields map[string]reflect.Type // the fields of a struct, by their names in JSON; nil: the type is not a struct
	elem   reflect.Type            // the element type of a list or a map
}

var (
	reader     = reflect.TypeFor[json.Unmarshaler]()
	textReader = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// shapeOf returns the shape of a type. A type with its own decoder has an empty shape.
func shapeOf(t reflect.Type) (s shape) {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || reflect.PointerTo(t).Implements(reader) || reflect.PointerTo(t).Implements(textReader) {
		return shape{}
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array, reflect.Map:
		s.elem = t.Elem()
	case reflect.Struct:
		s.fields = map[string]reflect.Type{}
		for _, f := range reflect.VisibleFields(t) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case f.Tag.Get("json") == "-", !f.IsExported(), f.Anonymous && name == "": // VisibleFields lists the fields of an embedded struct, too
			case name == "":
				s.fields[f.Name] = f.Type
			default:
				s.fields[name] = f.Type
			}
		}
	}
	return s
}

// member returns the type of a member, or nil for any type. It refuses a name that differs from a
// field's only in case, which encoding/json would accept.
func (s shape) member(name string, path []string) (reflect.Type, error) {
	if s.fields == nil {
		return s.elem, nil
	}
	if t, ok := s.fields[name]; ok {
		return t, nil
	}
	for field := range s.fields {
		if strings.EqualFold(field, name) {
			return nil, &AmbiguousError{Field: strings.Join(path, "."), Reason: fmt.Sprintf("there is no such field; it is spelled %q", field)}
		}
	}
	return nil, nil
}

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

// ErrMore says that something follows the value.
var ErrMore = errors.New("there is more after the value")

// Unmarshal is json.Unmarshal for a text that can be read in one way only: it refuses what
// Check refuses, and members whose names differ from a field's in case alone. With closed
// it refuses all members that are no field.
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

// A shape is what is known of an object or a list from the type that it becomes.
type shape struct {
	fields map[string]reflect.Type // of a structure, by their names in JSON; nil: it is none
	elem   reflect.Type            // of a list or a map
}

var (
	reader     = reflect.TypeFor[json.Unmarshaler]()
	textReader = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// shapeOf is the shape of a type. A type that reads itself has none.
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
			case f.Tag.Get("json") == "-", !f.IsExported(), f.Anonymous && name == "": // whose own fields follow
			case name == "":
				s.fields[f.Name] = f.Type
			default:
				s.fields[name] = f.Type
			}
		}
	}
	return s
}

// member is the type of a member; nil: anything. It refuses a name that is nearly that of a
// field, which encoding/json would take for it.
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

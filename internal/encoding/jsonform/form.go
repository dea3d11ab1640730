package jsonform

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// A Form is a parsed schema. A nil Form accepts any value.
type Form struct {
	types    []string // empty for any type
	enum     []string // nil for any value
	pattern  *regexp.Regexp
	members  map[string]*Form
	required []string
	closed   bool // members that are not listed are invalid
	items    *Form
	minItems int
}

// types are the types of JSON Schema.
var types = []string{"null", "boolean", "integer", "number", "string", "array", "object"}

// OnlyText returns the name of the only member of an object, if the member is a text.
func (f *Form) OnlyText() (name string, ok bool) {
	if len(f.members) != 1 || f.enum != nil {
		return "", false
	}
	for name, member := range f.members {
		return name, slices.Equal(member.types, []string{"string"}) && member.enum == nil
	}
	return "", false
}

func Parse(text []byte) (*Form, error) {
	f := new(Form)
	if err := json.Unmarshal(text, f); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *Form) UnmarshalJSON(text []byte) error {
	var keywords map[string]json.RawMessage
	if err := json.Unmarshal(text, &keywords); err != nil {
		return fmt.Errorf("a schema must be an object: %w", err)
	}
	*f = Form{}
	for name, value := range keywords {
		if err := f.addKeyword(name, value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (f *Form) addKeyword(name string, value []byte) error {
	if bytes.Equal(value, []byte("null")) {
		return errors.New("null is not allowed")
	}
	switch name {
	case "type":
		return f.addTypes(value)
	case "enum":
		return json.Unmarshal(value, &f.enum)
	case "pattern":
		return json.Unmarshal(value, &f.pattern) // Regexp implements TextUnmarshaler
	case "properties":
		return json.Unmarshal(value, &f.members)
	case "required":
		return json.Unmarshal(value, &f.required)
	case "additionalProperties":
		open := true
		err := json.Unmarshal(value, &open)
		f.closed = !open
		return err
	case "items":
		return json.Unmarshal(value, &f.items)
	case "minItems":
		return json.Unmarshal(value, &f.minItems)
	case "$schema", "title", "description", "format":
		return nil
	}
	return errors.New("unknown keyword")
}

func (f *Form) addTypes(value []byte) error {
	if one := ""; json.Unmarshal(value, &one) == nil {
		f.types = []string{one}
	} else if err := json.Unmarshal(value, &f.types); err != nil {
		return err
	}
	for _, t := range f.types {
		if !slices.Contains(types, t) {
			return fmt.Errorf("unknown type %q, want one of %s", t, strings.Join(types, ", "))
		}
	}
	return nil
}

// Value parses a text that must be one JSON value, for Check.
func Value(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("unexpected text after the value")
	}
	return v, nil
}

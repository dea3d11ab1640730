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

// Form is a schema that values are held against. nil takes anything.
type Form struct {
	types    []string // none: any
	enum     []string // nil: anything
	pattern  *regexp.Regexp
	members  map[string]*Form
	required []string
	closed   bool // it has no members but these
	items    *Form
	minItems int
}

// types are those that JSON schema has.
var types = []string{"null", "boolean", "integer", "number", "string", "array", "object"}

// Parse reads a schema.
func Parse(text []byte) (*Form, error) {
	f := new(Form)
	if err := json.Unmarshal(text, f); err != nil {
		return nil, err
	}
	return f, nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (f *Form) UnmarshalJSON(text []byte) error {
	var keywords map[string]json.RawMessage
	if err := json.Unmarshal(text, &keywords); err != nil {
		return fmt.Errorf("a schema is an object: %w", err)
	}
	*f = Form{}
	for name, value := range keywords {
		if err := f.take(name, value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// take takes up one keyword.
func (f *Form) take(name string, value []byte) error {
	if bytes.Equal(value, []byte("null")) {
		return errors.New("null says nothing")
	}
	switch name {
	case "type":
		return f.takeTypes(value)
	case "enum":
		return json.Unmarshal(value, &f.enum)
	case "pattern":
		return json.Unmarshal(value, &f.pattern) // a Regexp reads itself
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
	return errors.New("unknown")
}

// takeTypes takes up one type, or a list of them.
func (f *Form) takeTypes(value []byte) error {
	if one := ""; json.Unmarshal(value, &one) == nil {
		f.types = []string{one}
	} else if err := json.Unmarshal(value, &f.types); err != nil {
		return err
	}
	for _, t := range f.types {
		if !slices.Contains(types, t) {
			return fmt.Errorf("there is no %q; known are %s", t, strings.Join(types, ", "))
		}
	}
	return nil
}

// Value reads a text that is one JSON value, as Check takes it.
func Value(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the value")
	}
	return v, nil
}

package jsonform

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A Fault reports why a value does not match a form.
type Fault struct {
	Path    []string // the members and elements from the root to the value
	Reason  string
	Unknown []string // members that are not allowed, in order
	Missing []string // required members
}

// Check validates a value returned by Value. It returns nil if the value is valid.
func (f *Form) Check(value any) *Fault {
	if f == nil {
		return nil
	}
	if got := typeOf(value); len(f.types) > 0 && !f.accepts(got, value) {
		return &Fault{Reason: fmt.Sprintf("got %s, want %s", got, strings.Join(f.types, " or "))}
	}
	if text, isText := value.(string); f.enum != nil && !(isText && slices.Contains(f.enum, text)) {
		return &Fault{Reason: "value must be one of " + quoted(f.enum...)}
	}
	switch v := value.(type) {
	case string:
		if f.pattern != nil && !f.pattern.MatchString(v) {
			return &Fault{Reason: fmt.Sprintf("%s does not match pattern %s", quoted(v), quoted(f.pattern.String()))}
		}
	case []any:
		return f.checkList(v)
	case map[string]any:
		return f.checkObject(v)
	}
	return nil
}

func (f *Form) checkList(list []any) *Fault {
	if len(list) < f.minItems {
		return &Fault{Reason: fmt.Sprintf("minItems: got %d, want %d", len(list), f.minItems)}
	}
	for i, value := range list {
		if fault := f.items.Check(value); fault != nil {
			return fault.in(strconv.Itoa(i))
		}
	}
	return nil
}

func (f *Form) checkObject(object map[string]any) *Fault {
	fault := new(Fault)
	for _, name := range f.required {
		if _, found := object[name]; !found {
			fault.Missing = append(fault.Missing, name)
		}
	}
	if len(fault.Missing) > 0 {
		fault.Reason = "missing property " + quoted(fault.Missing...)
		return fault
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		form, known := f.members[name]
		if fault := form.Check(object[name]); fault != nil {
			return fault.in(name)
		}
		if !known && f.closed {
			fault.Unknown = append(fault.Unknown, name)
		}
	}
	if len(fault.Unknown) > 0 {
		fault.Reason = "additional properties " + quoted(fault.Unknown...) + " not allowed"
		return fault
	}
	return nil
}

// in returns the fault with its path extended by one level above.
func (f *Fault) in(name string) *Fault {
	f.Path = append([]string{name}, f.Path...)
	return f
}

func typeOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case json.Number:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}

func (f *Form) accepts(got string, value any) bool {
	if slices.Contains(f.types, got) {
		return true
	}
	number, _ := value.(json.Number)
	_, err := number.Int64()
	return err == nil && slices.Contains(f.types, "integer")
}

func quoted(texts ...string) string {
	all := make([]string, len(texts))
	for i, text := range texts {
		escaped := strconv.Quote(text)
		all[i] = "'" + strings.ReplaceAll(escaped[1:len(escaped)-1], `\"`, `"`) + "'"
	}
	return strings.Join(all, ", ")
}

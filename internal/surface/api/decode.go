package api

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"lockkeeper"
	"lockkeeper/internal/encoding/strictjson"
)

// decodeBody reads a body of JSON: one value, whose fields are all known and spelled as
// they are. No body is an empty object.
func decodeBody[T any](r *http.Request) (in T, err error) {
	body, err := io.ReadAll(r.Body) // which is in memory already
	if err != nil {
		return in, err
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return in, nil
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return in, &refusal{code: codeMedia, reason: fmt.Sprintf("the body is said to be %q", r.Header.Get("Content-Type")), next: "send JSON, with Content-Type: application/json"}
	}
	if err := strictjson.Unmarshal(body, &in, true); err != nil {
		return in, wrongJSON(err, reflect.TypeFor[T]())
	}
	return in, nil
}

// checkText refuses a body that two readers could understand in different ways.
func checkText(c *call, body []byte) error {
	media, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil || media != mediaForm {
		if err := strictjson.Check(body); err != nil {
			return wrongJSON(err, nil)
		}
		return nil
	}
	return checkQueryText(string(body))
}

// checkQueryText refuses a form or a query that is not UTF-8. Whether it is one at all is
// for its reader to say.
func checkQueryText(raw string) error {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil
	}
	for name, texts := range values {
		for _, text := range append(texts, name) {
			if !utf8.ValidString(text) {
				return &lockkeeper.InputError{Field: strings.ToValidUTF8(name, "?"), Value: strings.ToValidUTF8(text, "?"), Reason: "not UTF-8", Next: "send text as UTF-8"}
			}
		}
	}
	return nil
}

func wrongBody(field, reason string) error {
	if field == "" {
		field = "body"
	}
	return &lockkeeper.InputError{Field: field, Reason: reason, Next: "see /api/v1/openapi.json for what the body is"}
}

// wrongJSON explains why a body does not decode into a type.
func wrongJSON(err error, t reflect.Type) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	var input *lockkeeper.InputError
	var ambiguous *strictjson.AmbiguousError
	switch {
	case errors.As(err, &ambiguous):
		return wrongBody(ambiguous.Field, ambiguous.Reason)
	case errors.Is(err, strictjson.ErrMore):
		return wrongBody("", err.Error())
	case errors.As(err, &input):
		return input
	case errors.As(err, &syntax):
		return wrongBody("", fmt.Sprintf("not JSON, at byte %d: %s", syntax.Offset, syntax))
	case errors.As(err, &kind):
		return wrongBody(fieldIn(t, kind.Field), fmt.Sprintf("it is %s, and must be %s", valueNamed(kind.Value), spelled(kind.Type)))
	case errors.Is(err, io.ErrUnexpectedEOF):
		return wrongBody("", "not JSON: it ends too early")
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return wrongBody(strings.Trim(name, `"`), "there is no such field")
	}
	return wrongBody("", err.Error())
}

// fieldIn is the path to a field as JSON has it: without the names of embedded structures.
func fieldIn(t reflect.Type, path string) string {
	var names []string
	for name := range strings.SplitSeq(path, ".") {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
			t = t.Elem()
		}
		if t.Kind() == reflect.Struct {
			if f, ok := t.FieldByName(name); ok && f.Anonymous && nameOf(f) == "" {
				t = f.Type
				continue
			}
			for _, f := range reflect.VisibleFields(t) {
				if nameOf(f) == name {
					t = f.Type
					break
				}
			}
		}
		names = append(names, name)
	}
	return strings.Join(names, ".")
}

// valueNamed is what JSON found, as encoding/json names it, with its article.
func valueNamed(value string) string {
	switch kind, _, isNumber := strings.Cut(value, " "); {
	case isNumber:
		return "the " + value
	case kind == "array":
		return "a list"
	case kind == "object":
		return "an object"
	case kind == "bool":
		return "true or false"
	default:
		return "a " + kind
	}
}

// spelled is how JSON spells values of a type.
func spelled(t reflect.Type) string {
	if t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return "a string"
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number, 0 or more"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "a whole number"
	}
	return "a number"
}

// decodeQuery reads what follows the ? in an address: every name is known, and comes once
// unless it is a list.
func decodeQuery[T any](raw string) (in T, err error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return in, &lockkeeper.InputError{Field: "query", Value: raw, Reason: "not as a query is written", Next: "see /api/v1/openapi.json"}
	}
	into := reflect.ValueOf(&in).Elem()
	for name, texts := range values {
		fields := reflect.VisibleFields(into.Type())
		at := slices.IndexFunc(fields, func(f reflect.StructField) bool { return name != "" && nameOf(f) == name })
		if at < 0 {
			return in, &lockkeeper.InputError{Field: name, Reason: "nothing is asked so here", Next: "see /api/v1/openapi.json"}
		}
		field := into.FieldByIndex(fields[at].Index)
		if field.Kind() == reflect.Slice {
			for _, text := range texts {
				field.Set(reflect.Append(field, reflect.ValueOf(text)))
			}
			continue
		}
		if len(texts) > 1 {
			return in, &lockkeeper.InputError{Field: name, Value: strings.Join(texts, ", "), Reason: "it is given more than once", Next: "give it once"}
		}
		if err := setText(field, texts[0]); err != nil {
			return in, &lockkeeper.InputError{Field: name, Value: texts[0], Reason: err.Error(), Next: "see /api/v1/openapi.json"}
		}
	}
	return in, nil
}

// nameOf is the name that JSON, or a query, has for a field.
func nameOf(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

func setText(into reflect.Value, text string) (err error) {
	if into.Kind() == reflect.Pointer { // it matters whether it was given
		into.Set(reflect.New(into.Type().Elem()))
		into = into.Elem()
	}
	switch {
	case into.Type() == reflect.TypeFor[time.Time]():
		at, err := time.Parse(time.RFC3339, text)
		into.Set(reflect.ValueOf(at))
		if err != nil {
			return errors.New("not a time such as 2026-01-31T08:30:00Z")
		}
	case into.Kind() == reflect.String:
		into.SetString(text)
	case into.Kind() == reflect.Bool:
		yes, err := strconv.ParseBool(text)
		into.SetBool(yes)
		if err != nil {
			return errors.New("neither true nor false")
		}
	case into.CanUint():
		n, err := strconv.ParseUint(text, 10, 63)
		into.SetUint(n)
		if err != nil {
			return errors.New("not a whole number, 0 or more")
		}
	default:
		n, err := strconv.ParseInt(text, 10, 64)
		into.SetInt(n)
		if err != nil {
			return errors.New("not a whole number")
		}
	}
	return nil
}

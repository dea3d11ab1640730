package api

import (
	"bytes"
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

// decodeBody decodes a JSON body strictly: unknown or misspelled fields are errors. An empty
// body is an empty object.
func decodeBody(r *http.Request, into any) error {
	body, err := io.ReadAll(r.Body) // readBody has the body in memory
	if err != nil || len(bytes.TrimSpace(body)) == 0 {
		return err
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != mediaJSON {
		return &refusal{code: codeMedia, reason: fmt.Sprintf("the Content-Type is %q", r.Header.Get("Content-Type")), next: "send JSON, with Content-Type: application/json"}
	}
	if err := strictjson.Unmarshal(body, into, true); err != nil {
		return wrongJSON(err)
	}
	return nil
}

// checkText refuses an ambiguous body, which two programs could read differently.
func checkText(c *call, body []byte) error {
	media, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil || media != mediaForm {
		if err := strictjson.Check(body); err != nil {
			return wrongJSON(err)
		}
		return nil
	}
	return checkQueryText(string(body))
}

// checkQueryText refuses a form or query that is not UTF-8. It leaves syntax errors to the
// decoder.
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
	return &lockkeeper.InputError{Field: field, Reason: reason, Next: "see /api/v1/openapi.json for the fields of the body"}
}

// wrongJSON explains why a body does not decode.
func wrongJSON(err error) error {
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
		return wrongBody(fieldIn(kind.Field), fmt.Sprintf("it is %s and must be %s", valueNamed(kind.Value), spelled(kind.Type)))
	case errors.Is(err, io.ErrUnexpectedEOF):
		return wrongBody("", "not JSON: it ends too early")
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return wrongBody(strings.Trim(name, `"`), "unknown field")
	}
	return wrongBody("", err.Error())
}

// fieldIn returns the JSON path of a field, without the names of embedded structs, which are the
// only ones with capital letters.
func fieldIn(path string) string {
	names := slices.DeleteFunc(strings.Split(path, "."), func(name string) bool { return name != strings.ToLower(name) })
	return strings.Join(names, ".")
}

// kindWords describes the kinds of values that encoding/json and JSON schemas name.
var kindWords = map[string]string{"string": "a string", "bool": "true or false", "boolean": "true or false", "array": "a list", "object": "an object", "integer": "a whole number", "number": "a number"}

// valueNamed describes a value that encoding/json reports.
func valueNamed(value string) string {
	kind, _, isNumber := strings.Cut(value, " ")
	if isNumber {
		return "the " + value
	}
	return kindWords[kind]
}

// spelled describes the JSON value of a type.
func spelled(t reflect.Type) string {
	s := (&schemas{components: map[string]schema{}}).of(t)
	words := kindWords["object"] // a schema without a type refers to the schema of a struct
	switch kind := s["type"].(type) {
	case string:
		words = kindWords[kind]
	case []string:
		words = kindWords[kind[0]]
	}
	if s["minimum"] != nil {
		words += ", 0 or more"
	}
	return words
}

// decodeQuery decodes a query string. Every name must be known, and must occur once unless
// it is a list.
func decodeQuery[T any](raw string) (in T, err error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return in, &lockkeeper.InputError{Field: "query", Value: raw, Reason: "invalid query", Next: "see /api/v1/openapi.json"}
	}
	into := reflect.ValueOf(&in).Elem()
	for name, texts := range values {
		fields := reflect.VisibleFields(into.Type())
		at := slices.IndexFunc(fields, func(f reflect.StructField) bool { return name != "" && nameOf(f) == name })
		if at < 0 {
			return in, &lockkeeper.InputError{Field: name, Reason: "unknown query parameter", Next: "see /api/v1/openapi.json"}
		}
		field := into.FieldByIndex(fields[at].Index)
		if field.Kind() == reflect.Slice {
			for _, text := range texts {
				field.Set(reflect.Append(field, reflect.ValueOf(text)))
			}
			continue
		}
		if len(texts) > 1 {
			return in, &lockkeeper.InputError{Field: name, Value: strings.Join(texts, ", "), Reason: "given more than once", Next: "give it once"}
		}
		if err := setText(field, texts[0]); err != nil {
			return in, &lockkeeper.InputError{Field: name, Value: texts[0], Reason: err.Error(), Next: "see /api/v1/openapi.json"}
		}
	}
	if checked, ok := any(&in).(interface{ check() error }); ok {
		err = checked.check()
	}
	return in, err
}

// nameOf returns the name of a field in JSON and in queries.
func nameOf(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

func setText(into reflect.Value, text string) (err error) {
	if into.Kind() == reflect.Pointer { // nil means that the parameter was not given
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

package flow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"lockkeeper"
	"lockkeeper/internal/encoding/jsonform"
	"lockkeeper/internal/encoding/jsonplace"
)

// AnswerSchema returns the JSON schema of an agent's answer, or nil for an empty name. It panics
// for an unknown name. The schema is self-contained and names no draft, because some validators
// would fetch it.
func AnswerSchema(name string) []byte {
	if name == "" {
		return nil
	}
	form, ok := answers()[name]
	if !ok {
		panic(fmt.Sprintf("flow: unknown answer %q; known are %s", name, strings.Join(slices.Sorted(maps.Keys(answers())), ", ")))
	}
	return form.text()
}

// document returns the form of a whole file.
func (f form) document(file string) form {
	top := maps.Clone(f)
	top["$schema"], top["title"] = "https://json-schema.org/draft/2020-12/schema", file
	return top
}

// text encodes a schema.
func (f form) text() []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(f); err != nil {
		panic(fmt.Sprintf("flow: schema: %v", err)) // cannot happen: a form has only maps, lists and strings
	}
	return b.Bytes()
}

// compiled parses the schemas of documents once.
var compiled = sync.OnceValue(func() map[string]*jsonform.Form {
	set := map[string]*jsonform.Form{}
	for file, form := range documents() {
		parsed, err := jsonform.Parse(form.document(file).text())
		if err != nil {
			panic(fmt.Sprintf("flow: schema of %s: %v", file, err))
		}
		set[file] = parsed
	}
	return set
})

// HasSchema reports whether documents with this file name have a schema of their own.
func HasSchema(file string) bool { return compiled()[file] != nil }

// answerForm returns the form of a document that stores an unchanged answer.
func answerForm(name string) *jsonform.Form {
	parsed, err := jsonform.Parse(answers()[name].stored().text())
	if err != nil {
		panic(fmt.Sprintf("flow: schema of the answer %s: %v", name, err))
	}
	return parsed
}

// fits checks a JSON text against the schema of a document. Messages use name for the text.
func fits(document, name string, text []byte) error {
	schema, ok := compiled()[document]
	if !ok {
		return &lockkeeper.InputError{Field: "document", Value: document, Reason: "unknown",
			Next: "use one of " + strings.Join(slices.Sorted(maps.Keys(compiled())), ", ")}
	}
	return fitsSchema(schema, name, text)
}

// fitsSchema checks a JSON text against a schema.
func fitsSchema(schema *jsonform.Form, name string, text []byte) error {
	doc, err := jsonform.Value(text)
	if err != nil {
		return notJSON(name, text, err)
	}
	bad := schema.Check(doc)
	if bad == nil {
		return nil
	}
	f := &fault{at: bad.Path, err: errors.New(bad.Reason)}
	switch {
	case len(bad.Unknown) > 0:
		f.at = append(f.at, bad.Unknown[0])
		f.err = lockkeeper.WithNext(errors.New("unknown member"), "remove it, or correct its name")
	case len(bad.Missing) > 0:
		f.err = lockkeeper.WithNext(fmt.Errorf("missing %s", strings.Join(bad.Missing, ", ")), "add it")
	}
	return f.inText(name, text)
}

// notJSON returns an error with the position at which a text is not JSON.
func notJSON(name string, text []byte, err error) error {
	e := &DocumentError{File: name, Err: fmt.Errorf("not JSON: %w", err)}
	var at *json.SyntaxError
	switch {
	case errors.As(err, &at):
		e.Line, e.Column = jsonplace.Position(text, at.Offset-1)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		e.Err = errors.New("not JSON: unexpected end")
		e.Line, e.Column = jsonplace.Position(text, int64(len(text)))
	}
	return e
}

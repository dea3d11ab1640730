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
	"lockkeeper/internal/jsonform"
	"lockkeeper/internal/jsonplace"
)

// Schemas lists the published schemas by file name, as docs/schemas holds them: of every
// document, of every agent's answer, of the screen manifest.
func Schemas() map[string][]byte {
	files := map[string][]byte{}
	for file, form := range documents() {
		files[strings.ReplaceAll(strings.TrimSuffix(file, ".json"), "/", "-")+".schema.json"] = form.document(file).text()
	}
	for name := range answers() {
		files["answer-"+name+".schema.json"] = AnswerSchema(name)
	}
	return files
}

// AnswerSchema is the form in which an agent is asked to answer: the JSON schema of one
// object, complete in itself. It does not say which draft it is written in, since some
// validators go and look for that. A name that no phase has is a mistake in the program.
// Empty: nil.
func AnswerSchema(name string) []byte {
	if name == "" {
		return nil
	}
	form, ok := answers()[name]
	if !ok {
		panic(fmt.Sprintf("flow: no answer is called %q; known are %s", name, strings.Join(slices.Sorted(maps.Keys(answers())), ", ")))
	}
	return form.text()
}

// document is the form of a whole file.
func (f form) document(file string) form {
	top := maps.Clone(f)
	top["$schema"], top["title"] = "https://json-schema.org/draft/2020-12/schema", file
	return top
}

// text spells a schema for people and programs.
func (f form) text() []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(f); err != nil {
		panic(fmt.Sprintf("flow: schema: %v", err)) // it is made of maps, lists and texts
	}
	return b.Bytes()
}

// compiled holds the schemas of documents ready for use; they never change.
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

// fits holds a JSON text against the schema of a document. Messages call the text name.
func fits(document, name string, text []byte) error {
	schema, ok := compiled()[document]
	if !ok {
		return &lockkeeper.InputError{Field: "document", Value: document, Reason: "unknown",
			Next: "use one of " + strings.Join(slices.Sorted(maps.Keys(compiled())), ", ")}
	}
	doc, err := jsonform.Value(text)
	if err != nil {
		return notJSON(name, text, err)
	}
	bad := schema.Check(doc)
	if bad == nil {
		return nil
	}
	f := &fault{place: bad.Place, err: errors.New(bad.Reason)}
	switch {
	case len(bad.Unknown) > 0:
		f.place = append(f.place, bad.Unknown[0])
		f.err = errors.New("unknown member; next: take it out, or correct its name")
	case len(bad.Missing) > 0:
		f.err = fmt.Errorf("without %s; next: fill it in", strings.Join(bad.Missing, ", "))
	}
	return f.placed(name, text)
}

// notJSON says where a text stops to be JSON.
func notJSON(name string, text []byte, err error) error {
	e := &PlaceError{File: name, Err: fmt.Errorf("not JSON: %w", err)}
	var at *json.SyntaxError
	switch {
	case errors.As(err, &at):
		e.Line, e.Column = jsonplace.Position(text, at.Offset-1)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		e.Err = errors.New("not JSON: it ends too early")
		e.Line, e.Column = jsonplace.Position(text, int64(len(text)))
	}
	return e
}

package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"lockkeeper"
	"lockkeeper/internal/jsonplace"
)

// schema is the form that an answer has to have. Nil: none.
type schema struct{ compiled *jsonschema.Schema }

// nothing loads no schema from anywhere: one that refers to others would be fetched.
type nothing struct{}

func (nothing) Load(url string) (any, error) {
	return nil, fmt.Errorf("it refers to %s; a schema has to be complete in itself", url)
}

func newSchema(text []byte) (*schema, error) {
	if text == nil {
		return nil, nil
	}
	refuse := func(err error) error {
		return &lockkeeper.InputError{Field: "schema", Value: string(text), Reason: err.Error(), Next: "correct the schema"}
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, refuse(err)
	}
	const name = "schema:answer"
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(nothing{})
	if err := compiler.AddResource(name, doc); err != nil {
		return nil, refuse(err)
	}
	compiled, err := compiler.Compile(name)
	if err != nil {
		return nil, refuse(err)
	}
	return &schema{compiled}, nil
}

// check holds an answer against the schema.
func (s *schema) check(from Origin, answer []byte) error {
	if len(bytes.TrimSpace(answer)) == 0 {
		return &OutputError{Origin: from, Reason: "there is none"}
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(answer))
	if err != nil {
		e := &OutputError{Origin: from, Reason: "not JSON: " + err.Error()}
		var at *json.SyntaxError
		switch {
		case errors.As(err, &at):
			e.Line, e.Column = jsonplace.Position(answer, at.Offset-1)
		case errors.Is(err, io.ErrUnexpectedEOF):
			e.Reason = "not JSON: it ends too early"
			e.Line, e.Column = jsonplace.Position(answer, int64(len(answer)))
		default: // something follows the document
			e.Line, e.Column = jsonplace.Position(answer, endOfDocument(answer))
		}
		return e
	}
	err = s.compiled.Validate(doc)
	var wrong *jsonschema.ValidationError
	if !errors.As(err, &wrong) {
		return err
	}
	for len(wrong.Causes) > 0 {
		wrong = wrong.Causes[0]
	}
	e := &OutputError{Origin: from, Reason: quote(wrong.ErrorKind.LocalizedString(message.NewPrinter(language.English)))}
	for _, part := range wrong.InstanceLocation {
		e.Pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(part)
	}
	e.Pointer = quote(e.Pointer)
	e.Line, e.Column = jsonplace.Position(answer, jsonplace.Find(answer, wrong.InstanceLocation))
	return e
}

// endOfDocument is where the first document of a text ends.
func endOfDocument(text []byte) int64 {
	d := json.NewDecoder(bytes.NewReader(text))
	var first json.RawMessage
	if d.Decode(&first) != nil {
		return 0
	}
	at := d.InputOffset()
	return at + int64(len(text[at:])-len(bytes.TrimLeft(text[at:], " \t\r\n")))
}

// answered takes the text of a result for its structured answer. Models like to fence it.
func answered(res Result) Result {
	text := strings.TrimSpace(res.Text)
	if body, fenced := strings.CutPrefix(text, "```"); fenced {
		_, body, _ = strings.Cut(body, "\n")
		if body, closed := strings.CutSuffix(body, "```"); closed {
			text = strings.TrimSpace(body)
		}
	}
	res.Structured = []byte(text)
	return res
}

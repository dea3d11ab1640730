package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/encoding/jsonform"
	"lockkeeper/internal/encoding/jsonplace"
)

// A schema validates an answer. A nil schema accepts any text.
type schema struct{ form *jsonform.Form }

func newSchema(text []byte) (*schema, error) {
	if text == nil {
		return nil, nil
	}
	form, err := jsonform.Parse(text)
	if err != nil {
		return nil, &lockkeeper.InputError{Field: "schema", Value: string(text), Reason: err.Error(), Next: "correct the schema"}
	}
	return &schema{form}, nil
}

// check validates an answer.
func (s *schema) check(from Origin, answer []byte) error {
	if len(bytes.TrimSpace(answer)) == 0 {
		return &OutputError{Origin: from, Reason: "no answer"}
	}
	doc, err := jsonform.Value(answer)
	if err != nil {
		e := &OutputError{Origin: from, Reason: "not JSON: " + err.Error()}
		var at *json.SyntaxError
		switch {
		case errors.As(err, &at):
			e.Line, e.Column = jsonplace.Position(answer, at.Offset-1)
		case errors.Is(err, io.ErrUnexpectedEOF):
			e.Reason = "not JSON: unexpected end"
			e.Line, e.Column = jsonplace.Position(answer, int64(len(answer)))
		default: // text after the document
			e.Line, e.Column = jsonplace.Position(answer, endOfDocument(answer))
		}
		return e
	}
	wrong := s.form.Check(doc)
	if wrong == nil {
		return nil
	}
	e := &OutputError{Origin: from, Reason: quote(wrong.Reason)}
	for _, part := range wrong.Path {
		e.Pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(part)
	}
	e.Pointer = quote(e.Pointer)
	e.Line, e.Column = jsonplace.Position(answer, jsonplace.Find(answer, wrong.Path))
	return e
}

// endOfDocument returns the offset of the text after the first document.
func endOfDocument(text []byte) int64 {
	d := json.NewDecoder(bytes.NewReader(text))
	var first json.RawMessage
	if d.Decode(&first) != nil {
		return 0
	}
	at := d.InputOffset()
	return at + int64(len(text[at:])-len(bytes.TrimLeft(text[at:], " \t\r\n")))
}

// answered uses the text of a result as its structured answer. It removes the code fence that
// models often add.
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

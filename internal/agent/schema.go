package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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

// check validates an answer. Its error has the position in the answer, starting at line 1.
func (s *schema) check(from Origin, answer []byte) error {
	wrong := func(offset int64, reason string) error {
		line, column := jsonplace.Position(answer, offset)
		return &Error{Origin: from, Kind: Malformed, Reason: fmt.Sprintf("line %d, column %d: %s", line, column, reason)}
	}
	if len(bytes.TrimSpace(answer)) == 0 {
		return &Error{Origin: from, Kind: Malformed, Reason: "no answer"}
	}
	doc, err := jsonform.Value(answer)
	var at *json.SyntaxError
	switch {
	case errors.As(err, &at):
		return wrong(at.Offset-1, "not JSON: "+err.Error())
	case errors.Is(err, io.ErrUnexpectedEOF):
		return wrong(int64(len(answer)), "not JSON: unexpected end")
	case err != nil: // text after the document
		return wrong(endOfDocument(answer), "not JSON: "+err.Error())
	}
	mismatch := s.form.Check(doc)
	if mismatch == nil {
		return nil
	}
	pointer := ""
	for _, part := range mismatch.Path {
		pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(part)
	}
	if pointer != "" {
		pointer = "at " + quote(pointer) + ": "
	}
	return wrong(jsonplace.Find(answer, mismatch.Path), pointer+quote(mismatch.Reason))
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

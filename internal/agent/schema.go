package agent

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
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

// maxObjects bounds how many places of a text are tried as the start of an answer.
const maxObjects = 1000

// find returns the answer in a text: the text itself, or else the first complete object in it that
// fits. Members that the schema does not have are removed. The note says what was ignored. If the
// schema asks for one text only and plain is set, a text without such an object is the answer. Such
// a text may contain other objects, for example a log. The error is about the text itself if it is JSON, and
// otherwise about the first object.
func (s *schema) find(from Origin, text []byte, plain bool) (answer []byte, note string, err error) {
	answer, ignored, err := s.fit(from, text, 0, text)
	if err == nil {
		return answer, noteOf(ignored), nil
	}
	name, isOutput := s.form.OnlyText()
	isOutput = isOutput && plain
	var atObject error
	isCut := false
	for start, tried := 0, 0; tried < maxObjects; tried++ {
		next := bytes.IndexByte(text[start:], '{')
		if next < 0 {
			break
		}
		start += next
		d := json.NewDecoder(bytes.NewReader(text[start:]))
		var object json.RawMessage
		if e := d.Decode(&object); errors.Is(e, io.ErrUnexpectedEOF) {
			isCut = bytes.HasPrefix(bytes.TrimSpace(text[start+1:]), []byte(`"`))
			break // the rest is an object that was cut off
		} else if e != nil {
			start++
			continue
		}
		answer, ignored, e := s.fit(from, object, start, text)
		if e == nil {
			return answer, noteOf(append([]string{"the text around the answer"}, ignored...)), nil
		}
		if atObject == nil && (!isOutput || hasMember(object, name)) {
			atObject = e
		}
		start += int(d.InputOffset())
	}
	switch isJSON := json.Valid(text); {
	case isJSON:
		return nil, "", err
	case atObject != nil:
		return nil, "", atObject
	}
	if isOutput && !isCut {
		said := cmp.Or(strings.TrimSpace(strings.ToValidUTF8(string(text), "\uFFFD")), "it printed nothing")
		answer, err = json.Marshal(map[string]string{name: said})
	}
	return answer, "", err
}

// hasMember reports whether a JSON object has a member.
func hasMember(object []byte, name string) bool {
	var members map[string]json.RawMessage
	err := json.Unmarshal(object, &members)
	return err == nil && members[name] != nil
}

func noteOf(ignored []string) string {
	if len(ignored) == 0 {
		return ""
	}
	return "ignored: " + strings.Join(ignored, ", ")
}

// fit validates a part of a text that starts at an offset. It returns the part without the members
// that the schema does not have, and their names.
func (s *schema) fit(from Origin, part []byte, offset int, text []byte) (answer []byte, ignored []string, err error) {
	value, err := jsonform.Value(part)
	if err != nil {
		return nil, nil, s.check(from, part)
	}
	for {
		mismatch := s.form.Check(value)
		switch {
		case mismatch == nil && ignored == nil:
			return part, nil, nil
		case mismatch == nil:
			answer, err = json.Marshal(value)
			return answer, ignored, err
		case len(mismatch.Unknown) == 0:
			return nil, nil, s.misfit(from, mismatch, part, offset, text)
		}
		at := memberAt(value, mismatch.Path)
		for _, name := range mismatch.Unknown {
			delete(at, name)
			ignored = append(ignored, "the member "+quote(strings.Join(append(slices.Clone(mismatch.Path), name), "/")))
		}
	}
}

// memberAt returns the object at a path in a value.
func memberAt(value any, path []string) map[string]any {
	for _, part := range path {
		switch v := value.(type) {
		case map[string]any:
			value = v[part]
		case []any:
			i, _ := strconv.Atoi(part) // a path of the value has valid numbers
			value = v[i]
		}
	}
	object, _ := value.(map[string]any)
	return object
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
	case err != nil: // there is text after the document
		return wrong(endOfDocument(answer), "not JSON: "+err.Error())
	}
	mismatch := s.form.Check(doc)
	if mismatch == nil {
		return nil
	}
	return s.misfit(from, mismatch, answer, 0, answer)
}

// misfit returns the error for a part of a text that does not match the schema.
func (s *schema) misfit(from Origin, mismatch *jsonform.Fault, part []byte, offset int, text []byte) error {
	pointer := ""
	for _, part := range mismatch.Path {
		pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(part)
	}
	if pointer != "" {
		pointer = "at " + quote(pointer) + ": "
	}
	line, column := jsonplace.Position(text, int64(offset)+jsonplace.Find(part, mismatch.Path))
	return &Error{Origin: from, Kind: Malformed, Reason: fmt.Sprintf("line %d, column %d: %s", line, column, pointer+quote(mismatch.Reason))}
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

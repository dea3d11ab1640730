package agent

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// An answer that does not match its schema is an error with a position.
//
// shows: PL-63 PL-85
func TestAnswers(t *testing.T) {
	const form = `{"type":"object","required":["items"],"properties":{"items":{"type":"array","items":{"type":"object","required":["name"],
		"properties":{"name":{"type":"string"},"a/b~c":{"type":"integer"}}}}},"additionalProperties":false}`
	s, err := newSchema([]byte(form))
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		answer  string
		at      [2]int // line, column
		pointer string
		says    string
	}{
		"right":             {answer: `{"items":[{"name":"x"}]}`},
		"right, with space": {answer: " \n{\"items\": []}\n "},
		"nothing":           {" \n", [2]int{0, 0}, "", "no answer"},
		"null":              {"null", [2]int{1, 1}, "", "want object"},
		"a wrong type":      {"{\n  \"items\": [\n    {\"name\": \"x\"},\n    {\"name\": 7}\n  ]\n}", [2]int{4, 14}, "/items/1/name", "got number, want string"},
		"a missing part":    {"{\"items\": [{\"name\": \"x\"},\n  {}]}", [2]int{2, 3}, "/items/1", "missing property 'name'"},
		"an odd name":       {`{"items":[{"name":"x","a/b~c":"y"}]}`, [2]int{1, 31}, "/items/0/a~1b~0c", "want integer"},
		"not JSON":          {"{\n  \"items\": [,]\n}", [2]int{2, 13}, "", "not JSON"},
		"cut off":           {"{\n  \"items\": [", [2]int{2, 13}, "", "unexpected end"},
		"words around it":   {"Here it is:\n {}", [2]int{2, 2}, "", "missing property 'items'"},
		"cut off in words":  {"Here it is: {\"items\":[", [2]int{1, 1}, "", "not JSON"},
		"binary":            {"\x00\xff", [2]int{1, 1}, "", "not JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := s.find(Origin{Agent: "claude"}, []byte(test.answer), false)
			var wrong *Error
			if !errors.As(err, &wrong) {
				if err != nil || test.says != "" {
					t.Errorf("%v, want %q", err, test.says)
				}
				return
			}
			want := ""
			if test.at != [2]int{} {
				want = fmt.Sprintf("line %d, column %d: ", test.at[0], test.at[1])
			}
			if test.pointer != "" {
				want += "at " + test.pointer + ": "
			}
			said, ok := strings.CutPrefix(wrong.Reason, want)
			if !ok || wrong.Kind != Malformed || test.says == "" || !strings.Contains(said, test.says) || test.pointer == "" && strings.HasPrefix(said, "at ") {
				t.Errorf("%s; want %+v", wrong.Reason, test)
			}
		})
	}
}

// The first complete object that fits is the answer, whatever is around it.
//
// shows: SW-8 PL-95
func TestAnswersInText(t *testing.T) {
	forms := map[string]string{
		"items":   `{"type":"object","required":["items"],"properties":{"items":{"type":"array","items":{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}},"additionalProperties":false}}},"additionalProperties":false}`,
		"summary": `{"type":"object","required":["summary"],"properties":{"summary":{"type":"string","pattern":"\\S"}},"additionalProperties":false}`,
	}
	for _, test := range []struct {
		form, text, want, note string
		plain                  bool
	}{
		{form: "items", text: `{"items":[]}`, want: `{"items":[]}`},
		{form: "items", text: "I looked at `{name}` and func() { return }.\n\n```json\n{\"items\": [{\"n\": 1}]}\n```\nDone!", want: `{"items": [{"n": 1}]}`, note: "ignored: the text around the answer"},
		{form: "items", text: `{"a":1} {"items":[]} {"items":[{"n":2}]}`, want: `{"items":[]}`, note: "ignored: the text around the answer"},
		{form: "items", text: `{"items":[{"n":12345678901234567,"why":"x"}],"more":{"a":1},"z":null}`, want: `{"items":[{"n":12345678901234567}]}`, note: "ignored: the member items/0/why, the member more, the member z"},
		{form: "items", text: `x {"items":[],"more":1}`, want: `{"items":[]}`, note: "ignored: the text around the answer, the member more"},
		{form: "items", text: "no object", plain: true},
		{form: "items", text: `{"items":[{"n":"one"}]}`},
		{form: "items", text: strings.Repeat(`{"a":[`, 200_000)},
		{form: "items", text: strings.Repeat(`{`, 2_000_000)},
		{form: "summary", text: "all done {\n", want: `{"summary":"all done {"}`, plain: true},
		{form: "summary", text: "() => {}\n", want: `{"summary":"() =\u003e {}"}`, plain: true},
		{form: "summary", text: `{"level":"info"} done`, want: `{"summary":"{\"level\":\"info\"} done"}`, plain: true},
		{form: "summary", text: `so: {"summary": 7}`, plain: true},
		{form: "summary", text: "", want: `{"summary":"it printed nothing"}`, plain: true},
		{form: "summary", text: "all done"},
		{form: "summary", text: `{"summary": 7}`, plain: true},
		{form: "summary", text: `null`, plain: true},
		{form: "summary", text: `{"summary": "cut o`, plain: true},
		{form: "summary", text: `so: {"summary": "changed it", "files": ["a"]}`, want: `{"summary":"changed it"}`, note: "ignored: the text around the answer, the member files", plain: true},
	} {
		s, err := newSchema([]byte(forms[test.form]))
		if err != nil {
			t.Fatal(err)
		}
		answer, note, err := s.find(Origin{}, []byte(test.text), test.plain)
		if string(answer) != test.want || note != test.note || (err == nil) != (test.want != "") {
			t.Errorf("%.80s: got %s, %q, %v", test.text, answer, note, err)
		}
		if err == nil && s.check(Origin{}, answer) != nil {
			t.Errorf("%.80s: the answer %s does not fit", test.text, answer)
		}
	}
}

// JSON output may be inside a code fence, with no other text around it.
func TestFences(t *testing.T) {
	for text, want := range map[string]string{
		"{}":                    "{}",
		"\n {} \n":              "{}",
		"```json\n{}\n```":      "{}",
		"```\n{\"a\":1}\n```\n": `{"a":1}`,
		"```json\n{}":           "```json\n{}",
		"```":                   "```",
		"so: ```json\n{}\n```":  "so: ```json\n{}\n```",
	} {
		if got := string(answered(Result{Text: text}).Structured); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

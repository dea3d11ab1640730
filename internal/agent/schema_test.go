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
		"right":              {answer: `{"items":[{"name":"x"}]}`},
		"right, with space":  {answer: " \n{\"items\": []}\n "},
		"nothing":            {" \n", [2]int{0, 0}, "", "no answer"},
		"null":               {"null", [2]int{1, 1}, "", "want object"},
		"a wrong type":       {"{\n  \"items\": [\n    {\"name\": \"x\"},\n    {\"name\": 7}\n  ]\n}", [2]int{4, 14}, "/items/1/name", "got number, want string"},
		"a missing part":     {"{\"items\": [{\"name\": \"x\"},\n  {}]}", [2]int{2, 3}, "/items/1", "missing property 'name'"},
		"one too many":       {`{"items":[],"more":1}`, [2]int{1, 1}, "", "'more' not allowed"},
		"an odd name":        {`{"items":[{"name":"x","a/b~c":"y"}]}`, [2]int{1, 31}, "/items/0/a~1b~0c", "want integer"},
		"not JSON":           {"{\n  \"items\": [,]\n}", [2]int{2, 13}, "", "not JSON"},
		"cut off":            {"{\n  \"items\": [", [2]int{2, 13}, "", "unexpected end"},
		"something behind":   {"{\"items\":[]}\n\nDone!", [2]int{3, 1}, "", "not JSON"},
		"words around it":    {"Here it is: {}", [2]int{1, 1}, "", "not JSON"},
		"another one behind": {`{"items":[]} {}`, [2]int{1, 14}, "", "not JSON"},
		"binary":             {"\x00\xff", [2]int{1, 1}, "", "not JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			err := s.check(Origin{Agent: "claude"}, []byte(test.answer))
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

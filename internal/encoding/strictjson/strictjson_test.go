package strictjson

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

type inner struct {
	Path string `json:"path"`
}

type own struct{ got string }

// UnmarshalJSON implements json.Unmarshaler.
func (o *own) UnmarshalJSON(text []byte) error {
	o.got = string(text)
	return nil
}

type value struct {
	inner
	Write   []string         `json:"write"`
	Each    []inner          `json:"each"`
	ByName  map[string]inner `json:"by_name"`
	Pointer *inner           `json:"pointer"`
	Any     any              `json:"any"`
	Own     own              `json:"own"`
	At      time.Time        `json:"at"`
	Plain   int
	Hidden  string `json:"-"`
}

func TestUnmarshal(t *testing.T) {
	for text, says := range map[string]string{
		`{"write":["a"],"path":"x","each":[{"path":"p"}],"by_name":{"A":{"path":"p"},"a":{}},"pointer":{"path":"q"},"any":{"x":1,"X":2},"own":{"Z":1,"z":2},"at":"2026-01-31T08:30:00Z","Plain":3}`: "",
		`{"write":["\ud83d\ude00 \\ud800 é \ufffd"]}`: "",
		`{"write":["a"],"write":["b"]}`:               "write: it is given more than once",
		`{"any":[{"x":1,"x":2}]}`:                     "any.0.x: it is given more than once",
		`{"own":{"z":1,"z":2}}`:                       "own.z: it is given more than once",
		`{"by_name":{"a":{},"a":{}}}`:                 "by_name.a: it is given more than once",
		`{"wr\u0069te":["a"],"write":["b"]}`:          "write: it is given more than once",
		`{"WRITE":["a"]}`:                             `WRITE: there is no such field; it is spelled "write"`,
		`{"Write":["a"],"write":["b"]}`:               `it is spelled "write"`,
		`{"Path":"x"}`:                                `it is spelled "path"`,
		`{"plain":3}`:                                 `it is spelled "Plain"`,
		`{"each":[{},{"PATH":"p"}]}`:                  `each.1.PATH`,
		`{"by_name":{"x":{"Path":"p"}}}`:              `by_name.x.Path`,
		`{"pointer":{"pAth":"p"}}`:                    `pointer.pAth`,
		"{\"write\":[\"a\xffb\"]}":                    "byte 12 is not UTF-8",
		"{\"\xff\":1}":                                "not UTF-8",
		`{"write":["\ud800"]}`:                        "half of a character",
		`{"write":["\udc00\ud800"]}`:                  "half of a character",
		`{"write":["\ud83d\u0041"]}`:                  "half of a character",
		`{"write":["\ud83d`:                           "half of a character",
		`{"ſpare":1}`:                                 "unknown field",
		`{"other":1}`:                                 "unknown field",
		`{"-":"x"}`:                                   "unknown field",
		`{} {}`:                                       ErrMore.Error(),
		`{`:                                           "unexpected",
		`{"write":"x"}`:                               "cannot unmarshal",
	} {
		var v value
		err := Unmarshal([]byte(text), &v, true)
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
	var v value
	if err := Unmarshal([]byte(`{"other":1,"write":["a"]}`), &v, false); err != nil || v.Write[0] != "a" {
		t.Errorf("%v %v", v.Write, err)
	}
	deep := strings.Repeat(`{"any":`, 100_000)
	if err := Unmarshal([]byte(deep), &v, true); err == nil {
		t.Error("it has an end")
	}
}

// encoding/json replaces no characters in accepted text.
func FuzzCheck(f *testing.F) {
	for _, text := range []string{`{"a":1}`, `{"a":1,"a":2}`, `["\ud83d\ude00"]`, `"\\ud800"`, "\xff", `"\u`, `\`, `"\ud800\`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		err := Check(text)
		var ambiguous *AmbiguousError
		if err != nil && !errors.As(err, &ambiguous) {
			t.Fatal(err)
		}
		var s string
		if err == nil && json.Unmarshal(text, &s) == nil && strings.ContainsRune(s, '\ufffd') &&
			!strings.Contains(string(text), "\ufffd") && !strings.Contains(strings.ToLower(string(text)), `\ufffd`) {
			t.Errorf("%q was read as %q", text, s)
		}
	})
}

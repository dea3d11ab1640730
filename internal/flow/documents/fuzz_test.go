package documents

import (
	"bytes"
	"testing"
)

// An accepted document is the same after it is written and read again.
// shows: PL-85
func FuzzDocument(f *testing.F) {
	whole, _, err := compose(result{Count: 1, Files: []string{"\u2028<&>"}}, About{By: "anna", WrittenAt: at(1)})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add([]byte(`{ "a\u0062" : [ 1e5 , {"b":"\ud800"} ] }`))
	f.Add([]byte(`{"a":1,"lockkeeper":{"format":1}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, bad := parse(data)
		if bad != nil {
			return
		}
		text, wrote, err := compose(doc.Body, doc.About)
		must(t, err)
		again, bad := parse(text)
		if bad != nil || again.Sum != doc.Sum || wrote.Sum != doc.Sum || !bytes.Equal(again.Body, doc.Body) {
			t.Fatalf("%q becomes %q: %v", data, text, bad)
		}
	})
}

// A truncated text with a header is detected.
// shows: PL-85
func FuzzText(f *testing.F) {
	f.Add("What -- why?", "# Found\n", 40)
	f.Fuzz(func(t *testing.T, prompt, body string, cut int) {
		h := header{Text: Text{Prompt: prompt, Method: MethodPaste, At: at(1)}}
		var err error
		h.SHA256, err = h.seal(body)
		must(t, err)
		open, err := h.comment()
		must(t, err)
		data := string(open) + body
		cut = max(0, min(cut, len(data)-1))
		if text, err := parseText(data[:cut]); text != nil {
			t.Fatalf("%q is read as %+v, %v", data[:cut], text, err)
		}
	})
}

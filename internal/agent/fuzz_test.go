package agent

import (
	"os"
	"path/filepath"
	"testing"
)

// The readers terminate for any output. A truncated output is finished only if the whole output
// is finished, too, or continues.
func FuzzStreams(f *testing.F) {
	files, err := filepath.Glob("testdata/*/*.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(initLine + goodLine + fakeLine + wordLine))
	form, err := newSchema([]byte(countSchema))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, a := range []Adapter{Claude{}, Codex{}, Gemini{}, Plain{}} {
			r := newReader(nil, a.stream(), func(e Event) {
				if len(e.Text) > maxEventText+len("…") {
					t.Errorf("an event of %d bytes", len(e.Text))
				}
			})
			r.lines.write(text)
			r.size = int64(len(text))
			for _, exit := range []*Exit{nil, {}, {Code: 1}, {Code: 137, Signal: 9}} {
				v := verdict{name: a.Name(), reader: r, exit: exit, form: form}
				res, finished, err := v.pass()
				if !finished && (err != nil || res.Structured != nil) {
					t.Errorf("%s: not finished, and %v, %s", a.Name(), err, res.Structured)
				}
				if !finished && exit != nil && r.unfinished(v.origin(res), *exit, "") == nil {
					t.Errorf("%s: no reason why it is not finished", a.Name())
				}
				if finished && len(text) > 0 && text[len(text)-1] != '\n' && exit == nil {
					t.Errorf("%s: finished in the middle of a line", a.Name())
				}
			}
		}
	})
}

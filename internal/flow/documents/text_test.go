package documents

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"lockkeeper"
)

// shows: PL-59 GP-23
func TestTexts(t *testing.T) {
	s := fresh(t)
	f := s.Unit("blog/posts")
	if text, err := f.ReadText(t.Context(), "topic"); text != nil || err != nil {
		t.Errorf("missing: %v, %v", text, err)
	}
	for _, text := range []Text{
		{Prompt: "What? --> <!-- ---- -- -", Method: MethodAPI, By: "anna", At: at(1), Body: "# Found\r\n\r\n<!-- lockkeeper {} -->\n-->\n"},
		{Prompt: "", Method: MethodPaste, By: "--", At: at(2), Body: "x"},
		{Prompt: "p\n-", Method: MethodRejected, By: "ben", At: at(3)},
	} {
		must(t, f.WriteText(t.Context(), "Topic/1", text))
		is, err := f.ReadText(t.Context(), "Topic/1")
		must(t, err)
		if *is != text {
			t.Errorf("got %+v, want %+v", *is, text)
		}
		data, err := os.ReadFile(filepath.Join(s.Dir(), "blog/posts", "research", "%54opic%2F1.md"))
		must(t, err)
		comment, body, _ := strings.Cut(string(data), "-->")
		if strings.Contains(strings.TrimPrefix(comment, "<!--"), "--") || body != "\n"+text.Body {
			t.Errorf("the comment ends early: %s", data)
		}
	}
	must(t, f.WriteText(t.Context(), "now", Text{Method: MethodPaste, Body: "x"}))
	if is, err := f.ReadText(t.Context(), "now"); err != nil || time.Since(is.At) > time.Hour {
		t.Errorf("without a time: %v, %v", is, err)
	}
	for _, text := range []Text{{Method: "guess", Body: "x"}, {Method: MethodAPI}, {Method: MethodPaste, Body: " \n"},
		{Method: MethodPaste, Body: "\xff"}, {Method: MethodPaste, Body: "x", Prompt: "\xff"}, {Method: MethodPaste, Body: "x", By: "\xff"}} {
		var input *lockkeeper.InputError
		if err := f.WriteText(t.Context(), "topic", text); !errors.As(err, &input) {
			t.Errorf("%+v: got %v", text, err)
		}
	}
}

// A person can create a text by hand. An empty file counts as no answer.
// shows: GP-23
func TestTextsOfOthers(t *testing.T) {
	f := fresh(t).Unit("posts")
	must(t, f.WriteText(t.Context(), "topic", Text{Method: MethodAPI, Body: "x"}))
	put := func(text string) (*Text, error) {
		must(t, os.WriteFile(filepath.Join(f.Dir(), "research", "topic.md"), []byte(text), 0o644))
		return f.ReadText(t.Context(), "topic")
	}
	for _, text := range []string{"# Found\n", "<!-- a comment -->\n", "x < y"} {
		is, err := put(text)
		must(t, err)
		if is.Body != text || is.Method != MethodPaste || is.At.IsZero() {
			t.Errorf("got %+v", is)
		}
	}
	for _, text := range []string{"", " \n\t\r\n"} {
		if is, err := put(text); is != nil || err != nil {
			t.Errorf("%q: got %+v, %v", text, is, err)
		}
	}
	for _, text := range []string{"<", "<!-- lock", "<!-- lockkeeper ", "<!-- lockkeeper {}", "<!-- lockkeeper {} -->", "<!-- lockkeeper {} -->\nx", "<!-- lockkeeper x -->\nx", "\xff"} {
		is, err := put(text)
		if bad := wantMalformed(t, err); is != nil || bad.Path != "posts/research/topic.md" {
			t.Errorf("%q: got %+v, %v", text, is, err)
		}
	}
}

// shows: PL-59
func TestAnyTextComesBack(t *testing.T) {
	f := fresh(t).Unit("posts")
	word := rapid.OneOf(rapid.String(), rapid.StringMatching(`[-<>!{}" \n]{0,12}`))
	rapid.Check(t, func(rt *rapid.T) {
		text := Text{Method: MethodRejected, Prompt: word.Draw(rt, "prompt"), By: word.Draw(rt, "by"), At: at(1), Body: word.Draw(rt, "body")}
		if err := f.WriteText(t.Context(), "topic", text); err != nil {
			rt.Fatal(err)
		}
		if is, err := f.ReadText(t.Context(), "topic"); err != nil || *is != text {
			rt.Fatalf("got %+v, %v", is, err)
		}
	})
}

package documents

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"lockkeeper"
)

// shows: PL-59 CF-30 CF-31
func TestDocuments(t *testing.T) {
	s := fresh(t)
	f := s.Unit("blog/posts").Batch("b-1")
	if doc, err := f.Read(t.Context(), "apply.json", nil); doc != nil || err != nil {
		t.Fatalf("missing: %v, %v", doc, err)
	}
	about := About{WrittenAt: at(1), By: "anna", Calls: []json.RawMessage{json.RawMessage(`{"cost":0.25}`)}}
	wrote, err := f.Write(t.Context(), "apply.json", result{Count: 2, Files: []string{"a<b>.rb"}}, about)
	must(t, err)
	const body = `{"count":2,"files":["a<b>.rb"]}`
	sum := sha256.Sum256([]byte(body))
	want := &Doc{Path: "blog/posts/batches/b-1/apply.json", Body: json.RawMessage(body), Sum: hex.EncodeToString(sum[:]), About: about}
	read, err := f.Read(t.Context(), "apply.json", checkResult)
	must(t, err)
	if !reflect.DeepEqual(wrote, want) || !reflect.DeepEqual(read, want) {
		t.Errorf("wrote %+v, read %+v, want %+v", wrote, read, want)
	}
	text, err := os.ReadFile(filepath.Join(s.Dir(), want.Path))
	must(t, err)
	if !strings.HasPrefix(string(text), "{\n  \"count\": 2,\n") || !strings.HasSuffix(string(text), "}\n") {
		t.Errorf("not written for a person: %s", text)
	}
	if filepath.Join(s.Dir(), "blog/posts", "batches", "b-1") != f.Dir() {
		t.Errorf("it is said to be in %s", f.Dir())
	}
	again, err := f.Write(t.Context(), "apply.json", read.Body, About{By: "ben"}) // the body as it was read
	must(t, err)
	if again.Sum != want.Sum || again.About.WrittenAt.IsZero() {
		t.Errorf("the same body has another hash, or no time: %+v", again)
	}
	empty, err := f.Write(t.Context(), "review.json", struct{}{}, about)
	must(t, err)
	if read, err := f.Read(t.Context(), "review.json", nil); err != nil || string(read.Body) != "{}" || read.Sum != empty.Sum {
		t.Errorf("an empty document: %+v, %v", read, err)
	}
}

// A document of a person or another tool lacks the member "lockkeeper", and check validates it.
// shows: PL-85
func TestDocumentsOfOthers(t *testing.T) {
	s := fresh(t)
	f := s.Unit("posts")
	_, err := f.Write(t.Context(), "analysis.json", result{Count: 1}, About{})
	must(t, err)
	put := func(text string) (*Doc, error) {
		must(t, os.WriteFile(filepath.Join(f.Dir(), "analysis.json"), []byte(text), 0o644))
		return f.Read(t.Context(), "analysis.json", checkResult)
	}
	doc, err := put("\n{ \"count\" : 1.0e0 ,\t\"files\": [ \"\\u0061\" ] }\n\n")
	if err == nil || doc != nil {
		t.Error("1.0e0 is no int, and check was not asked")
	}
	doc, err = put("\n{ \"c\\u006funt\" : 3 ,\t\"files\": [ \"\\u0061\" ] }\n\n")
	must(t, err)
	if string(doc.Body) != `{"c\u006funt":3,"files":["\u0061"]}` || !reflect.DeepEqual(doc.About, About{}) {
		t.Errorf("got %s, %+v", doc.Body, doc.About)
	}
	for text, part := range map[string]string{
		"":                                   "unexpected end",
		"[]":                                 "not a JSON object",
		"null":                               "not a JSON object",
		`{"count":1}{}`:                      "after top-level value",
		"{\n\n\"count\":1,}":                 "line 3",
		`{"count":1,"count":2}`:              "duplicate",
		"{\"count\":1,\"files\":[\"\xff\"]}": "UTF-8",
		`{"other":1}`:                        "unknown field",
		`{"count":1,"lockkeeper":{"format":1,"sha256":""}}`:          "hash",
		`{"count":1,"lockkeeper":{"format":2}}`:                      "format",
		`{"count":1,"lockkeeper":[]}`:                                "member",
		`{"count":1,"lockkeeper":null}`:                              "format",
		`{"count":1,"lockkeeper":{"format":1},"lockkeeper":{}}`:      "duplicate",
		`{"count":1,"lockkeeper":{"format":1},"lockkeepe\u0072":{}}`: "duplicate",
	} {
		doc, err := put(text)
		bad := wantMalformed(t, err)
		if doc != nil || bad.Path != "posts/analysis.json" || !strings.Contains(err.Error(), part) {
			t.Errorf("%q: got %v", text, err)
		}
	}
	for _, body := range []any{[]int{1}, "x", nil, func() {}, json.RawMessage(`{"a":1,"a":2}`), json.RawMessage("{\"a\":\"\xff\"}"), map[string]any{"lockkeeper": 1}} {
		_, err := f.Write(t.Context(), "analysis.json", body, About{})
		var input *lockkeeper.InputError
		if !errors.As(err, &input) {
			t.Errorf("%v was written: %v", body, err)
		}
	}
}

// shows: CF-30 GP-19
func TestReplaceAndRemove(t *testing.T) {
	s := fresh(t)
	f := s.Unit("posts")
	changed := func(err error, part string) {
		t.Helper()
		var c *ChangedError
		if !errors.As(err, &c) || !strings.Contains(err.Error(), part) || lockkeeper.CodeOf(err) != lockkeeper.CodeRefused {
			t.Errorf("got %v", err)
		}
	}
	must(t, f.Remove(t.Context(), nil, "batches.json"))
	if _, err := os.Stat(s.Dir()); err == nil {
		t.Error("removing nothing made the directory")
	}
	one, err := f.Replace(t.Context(), nil, "batches.json", result{Count: 1}, About{By: "anna", WrittenAt: at(1)})
	must(t, err)
	_, err = f.Replace(t.Context(), nil, "batches.json", result{Count: 2}, About{})
	changed(err, "it was created, by anna at 2026-03-04T05:01:06Z")
	two, err := f.Replace(t.Context(), one, "batches.json", result{Count: 2}, About{By: "ben"})
	must(t, err)
	_, err = f.Replace(t.Context(), one, "batches.json", result{Count: 3}, About{})
	changed(err, "differs, by ben")
	changed(f.Remove(t.Context(), one, "batches.json"), "differs")
	changed(f.Remove(t.Context(), nil, "batches.json"), "created")
	if is, err := f.Read(t.Context(), "batches.json", nil); err != nil || is.Sum != two.Sum {
		t.Errorf("a refused act changed something: %+v, %v", is, err)
	}
	must(t, f.Remove(t.Context(), two, "batches.json"))
	changed(f.Remove(t.Context(), two, "batches.json"), "removed")
	_, err = f.Replace(t.Context(), two, "batches.json", result{}, About{})
	changed(err, "removed")
	changed(s.Unit("none").Remove(t.Context(), two, "batches.json"), "removed")

	must(t, os.WriteFile(filepath.Join(f.Dir(), "batches.json"), []byte("{"), 0o644))
	for _, was := range []*Doc{nil, two} {
		_, err = f.Replace(t.Context(), was, "batches.json", result{}, About{})
		changed(err, "cannot be read")
		wantMalformed(t, err)
		changed(f.Remove(t.Context(), was, "batches.json"), "cannot be read")
	}
}

// shows: PL-85 CF-38
func TestSetAside(t *testing.T) {
	s := fresh(t)
	f := s.Unit("posts")
	if kept, err := f.SetAside(t.Context(), "audit.json"); kept != "" || err != nil {
		t.Errorf("nothing is there: %q, %v", kept, err)
	}
	for i, text := range []string{"one", "two", "three"} {
		_, err := f.Write(t.Context(), "audit.json", result{}, About{})
		must(t, err)
		must(t, os.WriteFile(filepath.Join(f.Dir(), "audit.json"), []byte(text), 0o644))
		kept, err := f.SetAside(t.Context(), "audit.json")
		must(t, err)
		if want := "posts/audit.json.malformed-" + string(rune('1'+i)); kept != want {
			t.Errorf("kept as %s, want %s", kept, want)
		}
		if doc, err := f.Read(t.Context(), "audit.json", nil); doc != nil || err != nil {
			t.Errorf("still there: %v, %v", doc, err)
		}
	}
	for i, text := range []string{"one", "two", "three"} {
		if is, err := os.ReadFile(filepath.Join(f.Dir(), "audit.json.malformed-"+string(rune('1'+i)))); err != nil || string(is) != text {
			t.Errorf("%s: %q, %v", text, is, err)
		}
	}
	if kept, err := f.SetAside(t.Context(), "audit.json"); kept != "" || err != nil {
		t.Errorf("nothing is there: %q, %v", kept, err)
	}
}

// shows: GP-18
func TestKeptContents(t *testing.T) {
	s := fresh(t)
	f := s.Unit("posts").Batch("b")
	if _, err := f.Kept(sha256.Sum256(nil)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing was kept: %v", err)
	}
	for _, text := range []string{"", "class A\nend\n", strings.Repeat("\x00x", 1<<20)} {
		for range 2 {
			sum, err := f.Keep(t.Context(), strings.NewReader(text))
			must(t, err)
			if sum != sha256.Sum256([]byte(text)) {
				t.Fatal("another hash")
			}
			file, err := f.Kept(sum)
			must(t, err)
			is, err := io.ReadAll(file)
			must(t, errors.Join(err, file.Close()))
			if string(is) != text {
				t.Errorf("another content of %d bytes", len(is))
			}
		}
		sum := sha256.Sum256([]byte(text))
		path := filepath.Join(f.Dir(), "files", hex.EncodeToString(sum[:]))
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("others can read it: %v, %v", info.Mode(), err)
		}
		must(t, os.WriteFile(path, []byte(text+"x"), 0o600))
		_, err := f.Kept(sum)
		wantMalformed(t, err)
		_, err = f.Keep(t.Context(), strings.NewReader(text)) // repairs it
		must(t, err)
		file, err := f.Kept(sum)
		must(t, err)
		must(t, file.Close())
	}
	if _, err := f.Kept(sha256.Sum256([]byte("other"))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it was not kept: %v", err)
	}
	broken := errors.New("broken")
	if _, err := f.Keep(t.Context(), io.MultiReader(strings.NewReader("half"), errReader{broken})); !errors.Is(err, broken) {
		t.Errorf("half a file was kept: %v", err)
	}
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

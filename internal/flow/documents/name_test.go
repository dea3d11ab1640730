package documents

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"lockkeeper"
)

// shows: GP-23 PL-59
func TestFolderNames(t *testing.T) {
	for name, want := range map[string]string{
		"posts":          "posts",
		"blog/posts":     "blog%2Fposts",
		"blog_posts":     "blog_posts",
		"blog%2Fposts":   "blog%252%46posts",
		"decisions":      "%64ecisions",
		"decisions2":     "decisions2",
		"":               "%",
		"%":              "%25",
		".":              "%2E",
		"..":             "%2E.",
		".lock":          "%2Elock",
		"a.b":            "a.b",
		"+tasks":         "+tasks",
		"a+b":            "a%2Bb",
		"Posts":          "%50osts",
		"a\x00\n\\":      "a%00%0A%5C",
		"é":              "%C3%A9",
		"e\u0301":        "e%CC%81",
		"\xff":           "%FF",
		"batch-1":        "batch-1",
		"Admin::Reports": "%41dmin%3A%3A%52eports",
	} {
		if got := FolderName(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
		if back, ok := UnitName(want); !ok || back != name {
			t.Errorf("%q: back as %q, %v", want, back, ok)
		}
	}
	for _, folder := range []string{"", "decisions", ".lock", "..", "Posts", "a%2fb", "a%", "a%2", "%61", "%%", "a+b", "a b", "é", "%2Gx"} {
		if unit, ok := UnitName(folder); ok {
			t.Errorf("%q is the spelling of %q", folder, unit)
		}
	}
}

// Two names never share a folder, even if the disk ignores case or decomposes accents.
// shows: GP-23
func TestTwoNamesNeverShareAFolder(t *testing.T) {
	odd := rapid.OneOf(rapid.String(), rapid.StringMatching(`[.+%]?[a-zA-Z%/_.+]{0,6}`), rapid.StringOf(rapid.SampledFrom([]rune("%2Ff.+/d"))),
		rapid.SampledFrom([]string{"decisions", "Decisions", "%64ecisions", "%", "%25", ".", ".."}),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
	rapid.Check(t, func(t *rapid.T) {
		one, other := odd.Draw(t, "one"), odd.Draw(t, "other")
		folder := FolderName(one)
		if one != other && strings.EqualFold(folder, FolderName(other)) {
			t.Fatalf("%q and %q share %q", one, other, folder)
		}
		if back, ok := UnitName(folder); !ok || back != one {
			t.Fatalf("%q is spelled %q, and that is %q, %v", one, folder, back, ok)
		}
		if folder == "" || folder == decisionsDir || folder[0] == '.' || strings.ContainsFunc(folder, func(r rune) bool { return r <= ' ' || r > '~' || r == '/' || r == '\\' }) {
			t.Fatalf("%q is no safe folder", folder)
		}
		if unit, ok := UnitName(other); ok && FolderName(unit) != other { // other is used as a folder name
			t.Fatalf("%q is read as %q, which is not spelled so", other, unit)
		}
	})
}

// shows: GP-23
func TestNamesThatAreTooLong(t *testing.T) {
	s := fresh(t)
	longest := strings.Repeat("x", maxName)
	if _, err := s.Unit(longest).Write(t.Context(), "analysis.json", result{}, About{}); err != nil {
		t.Errorf("the longest name: %v", err)
	}
	refused := func(what string, err error) {
		t.Helper()
		var input *lockkeeper.InputError
		if !errors.As(err, &input) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	for _, f := range []*Folder{s.Unit(longest + "x"), s.Unit(strings.Repeat("/", 86)), s.Unit("posts").Sub("batches", longest+"x").Sub("deeper")} {
		_, err := f.Read(t.Context(), "apply.json", nil)
		refused("read", err)
		_, err = f.Write(t.Context(), "apply.json", result{}, About{})
		refused("write", err)
		refused("remove", f.Remove(t.Context(), nil, "apply.json"))
		_, err = f.Keep(t.Context(), strings.NewReader("x"))
		refused("keep", err)
		_, err = f.Kept([32]byte{})
		refused("kept", err)
		_, err = f.SetAside(t.Context(), "apply.json")
		refused("set aside", err)
	}
	refused("text", s.Unit("posts").WriteText(t.Context(), longest[:253], Text{Method: MethodPaste, Body: "x"}))
	for _, name := range []string{"", "analysis", "../analysis.json", "a/b.json", ".json", "decisions", "Analysis.json", "analysis.json.malformed-1", longest + ".json"} {
		_, err := s.Unit("posts").Read(t.Context(), name, nil)
		refused(name, err)
		_, err = s.Unit("posts").Write(t.Context(), name, result{}, About{})
		refused(name, err)
	}
}

// shows: PL-59 PL-60 GP-23
func TestUnits(t *testing.T) {
	s := fresh(t)
	list := func() (names, odd []string) {
		t.Helper()
		names, odd, err := s.Units(t.Context())
		must(t, err)
		return names, odd
	}
	if names, odd := list(); names != nil || odd != nil {
		t.Errorf("nothing is there, and yet %q, %q", names, odd)
	}
	if _, err := os.Stat(s.Dir()); err == nil {
		t.Error("looking made the directory")
	}
	want := []string{"", "+tasks", "blog/posts", "blog_posts", "decisions"}
	for _, name := range want {
		_, err := s.Unit(name).Write(t.Context(), "analysis.json", result{}, About{})
		must(t, err)
	}
	must(t, s.Record(t.Context(), PastDecision{Description: "x", Controller: "posts", Decision: Deferred}))
	must(t, os.Mkdir(filepath.Join(s.Dir(), "Old Stuff"), 0o755))
	must(t, os.Symlink("+tasks", filepath.Join(s.Dir(), "linked")))
	must(t, os.WriteFile(filepath.Join(s.Dir(), "README.md"), nil, 0o644))
	names, odd := list()
	if !slices.Equal(names, want) || !slices.Equal(odd, []string{"Old Stuff", "linked"}) {
		t.Errorf("got %q and %q", names, odd)
	}
}

// shows: CF-34
func TestFindLegacy(t *testing.T) {
	root := t.TempDir()
	look := func(want bool) {
		t.Helper()
		dir, found, err := FindLegacy(root)
		must(t, err)
		if found != want || found && dir != filepath.Join(root, ".harden") {
			t.Errorf("got %q, %v", dir, found)
		}
	}
	look(false)
	must(t, os.WriteFile(filepath.Join(root, ".harden"), nil, 0o644))
	look(false)
	must(t, os.Remove(filepath.Join(root, ".harden")))
	must(t, os.Mkdir(filepath.Join(root, ".harden"), 0o755))
	look(true)
}

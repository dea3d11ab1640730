package documents

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"lockkeeper"
)

// shows: GP-23 PL-59
func TestUnitPaths(t *testing.T) {
	for name, want := range map[string]string{
		"posts":            "posts",
		"blog/posts":       "blog/posts",
		"blog_posts":       "blog_posts",
		"admin/v1.2/users": "admin/v1.2/users",
		"blog/my posts":    "blog/my posts~5",
		"blog/My Posts":    "blog/My Posts",
		"blog/CSV Export":  "blog/CSV Export~6",
		"blog%2Fposts":     "blog%252Fposts~g",
		"decisions":        "decisions~",
		"Decisions":        "Decisions~1",
		"decisions2":       "decisions2",
		"blog/research":    "blog/research~",
		"blog/batches/b1":  "blog/batches~/b1",
		"blog/a.json":      "blog/a%2Ejson",
		"blog/a.JSON.b":    "blog/a%2EJSON.b~u",
		"aux":              "aux~",
		"con.txt":          "con%2Etxt~",
		"console":          "console",
		"":                 "%",
		"a//b":             "a/%/b",
		"%":                "%25",
		".":                "%2E",
		"..":               "%2E%2E",
		"../../etc":        "%2E%2E/%2E%2E/etc",
		".lock":            "%2Elock",
		"a.":               "a%2E",
		" a ":              "%20a%20~1",
		"a.b":              "a.b",
		"+tasks":           "+tasks",
		"a+b":              "a+b",
		"Posts":            "Posts~1",
		"a~1":              "a%7E1",
		"a\x00\n\\":        "a%00%0A%5C",
		"café":             "café",
		"Über Uns":         "Über Uns",
		"投稿一覧":             "投稿一覧",
		"straße":           "stra%C3%9Fe",
		"e\u0301":          "e%CC%81",
		"\xff":             "%FF",
		"Admin::Reports":   "Admin%3A%3AReports~x",
	} {
		got := UnitPath(name)
		if got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
		if back, ok := unitOf(got); !ok || back != name {
			t.Errorf("%q: back as %q, %v", got, back, ok)
		}
	}
	for _, folder := range []string{"", "decisions", "research", ".lock", "..", "Posts", "posts~1", "posts~", "a%2Fb", "a%", "%61", "%%", "%2Gx", "a.json"} {
		if unit, ok := partOf(folder); ok {
			t.Errorf("%q is the spelling of %q", folder, unit)
		}
	}
	for name, want := range map[string]string{"Post List": "Post List", "show": "show", "a/b": "a%2Fb", "earlier": "earlier~"} {
		if got := FolderName(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}

// unitOf is the inverse of UnitPath.
func unitOf(folder string) (unit string, ok bool) {
	parts := strings.Split(folder, "/")
	for i := range parts {
		if parts[i], ok = partOf(parts[i]); !ok {
			return "", false
		}
	}
	return strings.Join(parts, "/"), true
}

// Two names never share a folder, even if the disk ignores case or decomposes accents. No folder
// of a unit is one that another unit has for its own documents.
// shows: GP-23
func TestTwoNamesNeverShareAFolder(t *testing.T) {
	odd := rapid.OneOf(rapid.String(), rapid.StringMatching(`[.+%~]?[a-zA-Z%/_.+~ ]{0,6}`), rapid.StringOf(rapid.SampledFrom([]rune("%2Ff.+/d~1 "))),
		rapid.StringOf(rapid.SampledFrom([]rune("éÉe\u0301ßſsSkK\u212aǅﬁ投 ö"))),
		rapid.SampledFrom([]string{"decisions", "Decisions", "%64ecisions", "%", "%25", ".", "..", "research", "Research", "files", "con", "con.a", "a.json", "A.JSON.malformed-1",
			strings.Repeat("x", 250) + "X", strings.Repeat("x", 251), strings.Repeat("X", 85)}),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
	onDisk := func(s string) string { return norm.NFD.String(cases.Fold().String(norm.NFC.String(s))) }
	rapid.Check(t, func(t *rapid.T) {
		one, other := odd.Draw(t, "one"), odd.Draw(t, "other")
		folder := UnitPath(one)
		if one != other && onDisk(folder) == onDisk(UnitPath(other)) {
			t.Fatalf("%q and %q share %q", one, other, folder)
		}
		if back, ok := unitOf(folder); !ok || back != one {
			t.Fatalf("%q is spelled %q, and that is %q, %v", one, folder, back, ok)
		}
		if back, ok := unitOf(norm.NFD.String(folder)); !ok || back != one {
			t.Fatalf("%q is spelled %q, which is %q, %v on a disk that decomposes", one, folder, back, ok)
		}
		for part := range strings.SplitSeq(folder, "/") {
			if part == "" || part == decisionsDir || isOwn(strings.ToLower(part)) || strings.Contains(strings.ToLower(part), ".json") || part[0] == '.' ||
				strings.ContainsAny(part, "\\:\x00") || strings.TrimRight(part, " .") != part {
				t.Fatalf("%q is no safe folder", folder)
			}
		}
		if FolderName(one) != "%" && strings.Contains(FolderName(one), "/") {
			t.Fatalf("%q is not one folder", FolderName(one))
		}
		if unit, ok := unitOf(other); ok && onDisk(UnitPath(unit)) != onDisk(other) { // other is used as a folder
			t.Fatalf("%q is read as %q, which is not spelled so", other, unit)
		}
		key := KeyName(one)
		if back, ok := ParseKeyName(key); !ok || back != one || strings.EqualFold(key, KeyName(other)) && one != other {
			t.Fatalf("%q has the key %q, and that is %q, %v", one, key, back, ok)
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
	for _, f := range []*Folder{s.Unit(longest + "x"), s.Unit("blog/" + strings.Repeat("%", 86)), s.Unit("posts").Batch(longest + "x")} {
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
	want := []string{"", "+tasks", "Admin", "blog", "blog/posts", "blog/posts/archive", "blog/research", "blog_posts", "decisions"}
	for _, name := range want {
		_, err := s.Unit(name).Write(t.Context(), "analysis.json", result{}, About{})
		must(t, err)
	}
	must(t, s.Record(t.Context(), PastDecision{Description: "x", Controller: "posts", Decision: Deferred}))
	must(t, os.Mkdir(filepath.Join(s.Dir(), "old stuff"), 0o755))
	must(t, os.Symlink("+tasks", filepath.Join(s.Dir(), "linked")))
	must(t, os.WriteFile(filepath.Join(s.Dir(), "README.md"), nil, 0o644))
	names, odd := list()
	if !slices.Equal(names, want) || !slices.Equal(odd, []string{"linked", "old stuff"}) {
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

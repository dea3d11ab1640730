package resource_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"lockkeeper"
	"lockkeeper/internal/compat/resource"
)

// Each resource of a book covers its files. Chapters above 99 have names too.
func TestBookResources(t *testing.T) {
	s := preset(t, "book", "")
	for name, want := range map[string][]string{
		"Chapter_01":    {"Manuscript/Chapters/Chapter_01/", "Manuscript/Chapters/Chapter_01.md", "Manuscript/Chapters/Chapter_01_chg.md"}, // shows: LM-6
		"Chapter_15":    {"Manuscript/Chapters/Chapter_15/", "Manuscript/Chapters/Chapter_15.md", "Manuscript/Chapters/Chapter_15_chg.md"},
		"Chapter_100":   {"Manuscript/Chapters/Chapter_100/", "Manuscript/Chapters/Chapter_100.md", "Manuscript/Chapters/Chapter_100_chg.md"}, // shows: GP-40
		"FrontMatter":   {"Manuscript/FrontMatter/"},                                                                                          // shows: LM-7
		"BackMatter":    {"Manuscript/BackMatter/"},                                                                                           // shows: LM-8
		"StyleSystem":   {"Manuscript/Style/Style_Guide.md", "Manuscript/Style/Style_Overrides.md"},                                           // shows: LM-9
		"QuoteRegistry": {"Manuscript/Quotes/Chapter_Quotes.md"},                                                                              // shows: LM-10
		"ImageRegistry": {"Manuscript/images/Image_Registry.md"},                                                                              // shows: LM-11
		"ProjectConfig": {".config/metadata.json", ".config/project.json", ".config/manifest.json"},                                           // shows: LM-12
	} {
		r, err := s.Resolve(name)
		if err != nil || r.Name != name || !slices.Equal(r.Paths, want) || r.Mode != lockkeeper.Write || r.Node {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	want := []string{"Chapter_{nn}", "FrontMatter", "BackMatter", "StyleSystem", "QuoteRegistry", "ImageRegistry", "ProjectConfig"}
	if got := s.Names(); !slices.Equal(got, want) {
		t.Errorf("names %q", got)
	}
}

// A misspelled name is refused with a suggestion.
func TestNearNames(t *testing.T) {
	s := preset(t, "book", "")
	for typed, want := range map[string]string{
		"Chapter_3":    "did you mean Chapter_03?",
		"Chapter_003":  "did you mean Chapter_03?",
		"chapter 7":    "did you mean Chapter_07?",
		"Chapter12":    "did you mean Chapter_12?",
		"stylesystem":  "did you mean StyleSystem?",
		"FrontMater":   "did you mean FrontMatter?",
		"Chapter_{nn}": "as in Chapter_05",
		"Weather":      "use one of",
		"":             "use one of",
	} {
		_, err := s.Resolve(typed)
		if lockkeeper.CodeOf(err) != lockkeeper.CodeInput || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", typed, err, want)
		}
	}
	none, err := tables(t, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := none.Resolve("Chapter_01"); err == nil || !strings.Contains(err.Error(), "lockkeeper init book") {
		t.Errorf("without a table: %v", err)
	}
}

// Covering finds the resource of every path that it covers.
//
// shows: LM-43 CF-2
func TestCovering(t *testing.T) {
	s := preset(t, "book", "")
	for path, want := range map[string][]string{
		"Manuscript/Chapters/Chapter_03/Chapter_03.md":      {"Chapter_03"},
		"Manuscript/Chapters/Chapter_03/Chapter_03_chg.md":  {"Chapter_03"},
		"Manuscript/Chapters/Chapter_03/sections/deep/a.md": {"Chapter_03"},
		"Manuscript/Chapters/Chapter_03":                    {"Chapter_03"},
		"Manuscript/Chapters/Chapter_03.md":                 {"Chapter_03"},
		"Manuscript/Chapters/Chapter_03.mdx":                nil,
		"Manuscript/Chapters/Chapter_3/a.md":                nil,
		"Manuscript/Chapters/Chapter_03_old/a.md":           nil,
		"Manuscript/Chapters":                               nil,
		"Manuscript/FrontMatter/preface.md":                 {"FrontMatter"},
		"Manuscript/images/Image_Registry.md":               {"ImageRegistry"},
		"Manuscript/images/a.png":                           nil,
		".config/project.json":                              {"ProjectConfig"},
		"Drafts/book.md":                                    nil,
	} {
		if got := s.Covering(path); !slices.Equal(got, want) {
			t.Errorf("%s: covered by %q, want %q", path, got, want)
		}
	}
	for n := range 150 {
		name := fmt.Sprintf("Chapter_%02d", n)
		r, err := s.Resolve(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range r.Paths {
			if got := s.Covering(strings.TrimSuffix(path, "/")); !slices.Equal(got, []string{name}) {
				t.Errorf("%s: covered by %q, want %s", path, got, name)
			}
		}
	}
}

// A registry that is split over chapters conflicts only with the chapters that contain a
// part of it.
//
// shows: CF-1 CF-2 GP-42
func TestPlacesDecideNotNames(t *testing.T) {
	s, err := tables(t, `resources:
  Chapter_{nn}: {files: ["Chapters/Chapter_{nn}/"]}
  ImageRegistry: {files: [Chapters/Chapter_03/Image_Registry.md]}
operations:
  images: {write: [ImageRegistry]}
  chapter: {write: ["Chapter_{nn}"]}
`)
	if err != nil {
		t.Fatal(err)
	}
	locks := func(op string, of ...string) []lockkeeper.Lock {
		n, err := s.Operation(op, resource.Args{Of: of})
		if err != nil {
			t.Fatal(err)
		}
		return n.Locks
	}
	registry := locks("images")
	for chapter, want := range map[string]bool{"3": true, "4": false} {
		if got := locks("chapter", chapter)[0].Conflicts(registry[0]); got != want {
			t.Errorf("chapter %s and the registry: conflict %v", chapter, got)
		}
	}
	if got, want := s.Covering("Chapters/Chapter_03/Image_Registry.md"), []string{"Chapter_03", "ImageRegistry"}; !slices.Equal(got, want) {
		t.Errorf("covered by %q, want %q", got, want)
	}
}

// Each prompt is found by its number and by its name.
//
// shows: GP-42
func TestPrompts(t *testing.T) {
	s := preset(t, "book", "")
	for _, c := range []struct {
		prompt, name string
		of           []string
		want         string
	}{
		{"1", "initialize", nil, "ProjectConfig"},                                                                                                // shows: LM-26
		{"2", "add-chapter", []string{"7"}, "ProjectConfig Chapter_07"},                                                                          // shows: LM-27
		{"3", "change-by-chg", []string{"5"}, "Chapter_05"},                                                                                      // shows: LM-28
		{"3", "change-by-chg", []string{"Chapter_12", "5", "05"}, "Chapter_05 Chapter_12"},                                                       // shows: LM-28
		{"4", "interactive-change", []string{"Chapter_05"}, "Chapter_05"},                                                                        // shows: LM-29
		{"5", "scan-for-user-edits", []string{"9", "8"}, "Chapter_08 Chapter_09"},                                                                // shows: LM-30
		{"6", "integrate-inbox", []string{"BackMatter"}, "BackMatter"},                                                                           // shows: LM-31
		{"6", "integrate-inbox", []string{"ImageRegistry", "4", "FrontMatter", "BackMatter"}, "BackMatter Chapter_04 FrontMatter ImageRegistry"}, // shows: LM-31
		{"7", "compile", nil, ""},                                                       // shows: LM-36
		{"8", "consistency-checker", nil, ""},                                           // shows: LM-36
		{"9", "export", nil, ""},                                                        // shows: LM-36
		{"10", "dashboard", nil, ""},                                                    // shows: LM-36
		{"11", "style-manager", nil, "StyleSystem"},                                     // shows: LM-32
		{"12", "git-operations", nil, ""},                                               // shows: LM-36
		{"13", "ai-detection-analysis", nil, ""},                                        // shows: LM-36
		{"14", "citation-finder", []string{"5"}, "Chapter_05"},                          // shows: LM-33
		{"14", "citation-finder", []string{"5", "BackMatter"}, "BackMatter Chapter_05"}, // shows: LM-33
		{"15", "visual-content-suggester", []string{"5"}, "Chapter_05 ImageRegistry"},   // shows: LM-34
		{"16", "image-manager", nil, "ImageRegistry"},                                   // shows: LM-35
		{"16", "image-manager", []string{"100"}, "Chapter_100 ImageRegistry"},           // shows: LM-35
		{"change-quotes", "change-quotes", nil, "QuoteRegistry"},
	} {
		for _, name := range []string{c.prompt, c.name} {
			got, err := s.Prompt(name, c.of...)
			if err != nil || strings.Join(got, " ") != c.want {
				t.Errorf("prompt %s of %q: %q, %v, want %s", name, c.of, got, err, c.want)
			}
		}
	}
}

// A prompt without the arguments it needs is refused.
//
// shows: DL-92 LM-37
func TestUnclearPrompts(t *testing.T) {
	s := preset(t, "book", "")
	for _, c := range []struct {
		prompt string
		of     []string
		want   string
	}{
		{"3", nil, "which Chapter_{nn} it works on"},
		{"6", nil, "which of Chapter_{nn}, FrontMatter, BackMatter, ImageRegistry it writes"},
		{"14", []string{"BackMatter"}, "which Chapter_{nn} it works on"},
		{"11", []string{"5"}, `how "5" is related: it works on StyleSystem`},
		{"3", []string{"5", "FrontMatter"}, `how "FrontMatter" is related`},
		{"7", []string{"5"}, "it works on no resources"},
		{"17", nil, "it is not in the table"},
		{"0", nil, "it is not in the table"},
		{"stile-manager", nil, "it is not in the table"},
	} {
		got, err := s.Prompt(c.prompt, c.of...)
		if u := unclear(t, err); len(got) != 0 || !strings.Contains(u.Error(), c.want) {
			t.Errorf("prompt %s of %q: %v, want %q", c.prompt, c.of, u, c.want)
		}
	}
	_, err := s.Prompt("stile-manager")
	if u := unclear(t, err); u.Next != "did you mean style-manager?" {
		t.Errorf("next: %s", u.Next)
	}
}

// A document of the preset is a new file or a section that is added once.
//
// shows: LM-4 LM-50
func TestDocuments(t *testing.T) {
	p, err := resource.PresetOf("book")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{".gitignore", "CLAUDE.md", "Process/18_Lock_Management_Module.md", "Process/AI-Assisted_Nonfiction_Authoring_Process.md",
		"Process/Prompts/QUICK_REFERENCE.md", "Proposal/CONCURRENCY.md"}
	var got []string
	for _, d := range p.Documents {
		got = append(got, d.Path)
		if d.Into("") != d.Text || !slices.Contains(strings.Split(d.Text, "\n"), d.Mark) {
			t.Errorf("%s: incomplete", d.Path)
		}
		once := d.Into("mine")
		if !strings.HasPrefix(once, "mine\n\n") || !strings.HasSuffix(once, d.Text) || d.Into(once) != once {
			t.Errorf("%s: %q", d.Path, once)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("documents %q", got)
	}
	if mine := "build/\n.locks/\n"; p.Documents[0].Into(mine) != mine {
		t.Error("an ignored path was added again")
	}
	if _, err := resource.PresetOf("film"); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
		t.Errorf("an unknown preset: %v", err)
	}
}

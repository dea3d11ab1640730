package flow

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"lockkeeper"
)

// samples returns one document of each kind as the program writes it, including empty lists.
func samples() map[string]any {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ready := Ready{"i1", "Paginate", High, Low, "It loads every post."}
	files := []File{{Path: "app/a.rb", New: lockkeeper.Version{Kind: lockkeeper.File, Mode: 0o644}}}
	gaps := []Gap{{Path: "app/b.rb", Reason: "not among the write targets", Phase: "apply", Planned: "batch_plan", At: at}}
	checked := Checked{Passed: true, Runs: []CheckRun{{Command: "true", Took: time.Second}}, Files: files, Again: []Recheck{{Moved: []string{"app/c.rb"}, At: at}}}
	return map[string]any{
		AnalysisFile:   Analysis{Purpose: "p", Behaviour: "b", Files: []string{"app/a.rb", "app/views/a/"}, Topics: []Topic{{Prompt: "How?"}, {Prompt: "Why?"}}}.Slugged(),
		ExtractFile:    Extract{[]Possible{{Description: "Paginate"}, {Description: "Cache"}}}.Numbered(),
		SynthesizeFile: Synthesis{Items: []Ready{ready}},
		AuditFile:      Audit{Items: []Audited{{ready, &Prior{Decision: Defer, Description: "Paginate", At: at}}}},
		DecisionsFile:  Decisions{[]Decided{{Ready: ready, Decision: Todo, By: "ann", At: at}, {Ready: Ready{ID: "p1", Description: "My own"}, Decision: Todo, By: "ann", At: at, Added: true}}},
		BatchesFile: Plan{[]Batch{{ID: "b1", Title: "t", Items: []string{"i1"}, WriteTargets: []string{"app/a.rb"}, Effort: Low},
			{ID: "b2", WriteTargets: []string{"./app//b.rb"}, After: []string{"b1"}, Prompt: "Do it"}}, &Approval{"ann", at}},
		ApplyFile:         Applied{Batch: Digest(Batch{}), Files: files, Gaps: gaps},
		TestFile:          checked,
		"ci_results.json": Checked{Skipped: "no commands"},
		VerificationFile:  Verification{Verdict{"pass", "All is well.", nil}, files},
		ReviewFile:        Review{State: "wanted", Files: files, At: at},
		LandedFile:        Landed{Landings: []uint64{1}, Files: files, At: at, Undone: &Approval{"ann", at}},
		ScreenFile:        ScreenDoc{"Post Detail", []json.RawMessage{[]byte(`"No pagination"`), []byte(`{"what":"slow"}`)}, []string{"app/a.rb"}},
		manifestFile:      Manifest{Screens: []ManifestScreen{{"Posts", "blog", "posts", "index", []string{}, []string{"app/models/user.rb"}}}},
	}
}

// shows: PL-95 SW-67
func TestDocumentsFitTheirSchemas(t *testing.T) {
	for file := range documents() {
		text, err := json.MarshalIndent(samples()[file], "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := Check(file, text); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
		if file == manifestFile {
			continue
		}
		sealed := strings.Replace(string(text), "{", `{"lockkeeper": {"format": 1, "sha256": "00"},`, 1)
		if err := Check(file, []byte(sealed)); err != nil {
			t.Errorf("with a seal: %v", err)
		}
	}
}

// A truncated or damaged document is refused, with a position.
//
// shows: PL-85
func TestDamagedDocuments(t *testing.T) {
	for file, doc := range samples() {
		text, err := json.MarshalIndent(doc, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		for n := range text {
			err := Check(file, text[:n])
			var at *DocumentError
			if !errors.As(err, &at) || at.File != file || at.Line == 0 {
				t.Fatalf("%s cut after %d bytes: %v", file, n, err)
			}
		}
		for _, whole := range []string{"null", "[]", "3", `"text"`, "{}", string(text) + "{}", string(text) + "x", strings.Replace(string(text), "{", `{"colour": "red",`, 1)} {
			if Check(file, []byte(whole)) == nil {
				t.Errorf("%s may be %s", file, whole)
			}
		}
	}
}

// shows: SW-15 SW-68 PL-24 PL-36 PL-63 GP-23
func TestCheckRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ file, text, want string }{
		"unknown document": {"notes.json", `{}`, `document "notes.json": unknown; next: use one of analysis.json, apply.json`},
		"unknown member":   {ExtractFile, "{\n \"items\": [],\n \"itmes\": []\n}", "extract.json:3:11: itmes: unknown member"},
		"missing member":   {ExtractFile, "{\"items\": [\n  {\"id\": \"a\"}\n]}", "extract.json:2:3: items/0: missing description"},
		"blank":            {ExtractFile, `{"items": [{"id": "a", "description": " "}]}`, "extract.json:1:39: items/0/description: "},
		"same id":          {ExtractFile, "{\"items\": [{\"id\": \"a\", \"description\": \"x\"},\n{\"id\": \"a\", \"description\": \"y\"}]}", `extract.json:2:1: items/1: "a" is already the id of items/0`},
		"kept and dropped": {SynthesizeFile, `{"items": [{"id":"a","description":"x","impact":"low","effort":"low","rationale":"r"}],` + "\n" + `"dropped": [{"id":"a","reason":"r"}]}`, `synthesize.json:2:13: dropped/0: "a" is dropped here and kept in items/0`},
		"level":            {SynthesizeFile, `{"items": [{"id":"a","description":"x","impact":"huge","effort":"low","rationale":"r"}],"dropped":[]}`, "items/0/impact: value must be one of 'high', 'medium', 'low'"},
		"decision":         {DecisionsFile, `{"items": [{"id":"a","description":"x","decision":"MAYBE","by":"ann","at":"2026-01-02T03:04:05Z"}]}`, "items/0/decision: value must be one of 'TODO'"},
		"no date":          {DecisionsFile, `{"items": [{"id":"a","description":"x","decision":"TODO","by":"ann","at":"yesterday"}]}`, "decisions.json"},
		"same slug":        {AnalysisFile, `{"purpose":"p","behaviour":"b","screens":[],"relations":[],"files":[],"research_topics":[{"prompt":"a","slug":"s"},{"prompt":"b","slug":"s"}]}`, `research_topics/1/slug: "s" is already the slug of research_topics/0`},
		"slug":             {AnalysisFile, `{"purpose":"p","behaviour":"b","screens":[],"relations":[],"files":[],"research_topics":[{"prompt":"a","slug":"../s"}]}`, "research_topics/0/slug"},
		"file outside":     {AnalysisFile, `{"purpose":"p","behaviour":"b","screens":[],"relations":[],"files":["../x"],"research_topics":[]}`, `files/0: path "../x": a path with ..`},
		"directory":        {BatchesFile, plan("app/models/"), "batches.json:2:20: batches/0/write_targets/0: over-lock: app/models/ is a directory"},
		"root":             {BatchesFile, plan("."), "over-lock"},
		"absolute":         {BatchesFile, plan("/etc/passwd"), `write_targets/0: path "/etc/passwd": not relative to the root`},
		"outside":          {BatchesFile, plan("app/../../x"), "a path with .."},
		"git":              {BatchesFile, plan("./.git/config"), ".git is protected"},
		"line break":       {BatchesFile, plan(`a\nb`), "a control character in it"},
		"no targets":       {BatchesFile, `{"batches":[{"id":"b1","title":"","items":[],"write_targets":[]}]}`, "batches/0/write_targets: minItems"},
		"batch id":         {BatchesFile, `{"batches":[{"id":"../b","title":"","items":[],"write_targets":["a"]}]}`, "batches/0/id: "},
		"item twice":       {BatchesFile, `{"batches":[{"id":"b1","title":"","items":["i1"],"write_targets":["a"]},{"id":"b2","title":"","items":["i1"],"write_targets":["b"]}]}`, `batches/1/items/0: item "i1" of batch b2 is already in batch b1`},
		"later batch":      {BatchesFile, `{"batches":[{"id":"b1","title":"","items":[],"write_targets":["a"],"after":["b2"]},{"id":"b2","title":"","items":[],"write_targets":["b"]}]}`, `batches/0/after/0: batch b1 comes after "b2", which is not an earlier batch`},
		"version":          {ReviewFile, `{"state":"wanted","at":"2026-01-02T03:04:05Z","files":[{"path":"a","old":"nothing","new":"file"}]}`, "files/0/new: "},
		"state":            {ReviewFile, `{"state":"fine","at":"2026-01-02T03:04:05Z","files":[]}`, "state: value must be one of"},
		"file twice":       {ReviewFile, `{"state":"wanted","at":"2026-01-02T03:04:05Z","files":[{"path":"a","old":"nothing","new":"nothing"},{"path":"a","old":"nothing","new":"nothing"}]}`, "files/1"},
		"screen directory": {ScreenFile, `{"screen":"a","findings":[],"write_targets":["app/views/"]}`, "write_targets/0: over-lock"},
		"negative landing": {LandedFile, `{"landings":[-1],"grant_id":"g","fence":1,"files":[],"at":"2026-01-02T03:04:05Z"}`, "landed.json:1:"},
	} {
		err := Check(tc.file, []byte(tc.text))
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
		if want := map[bool]lockkeeper.Code{true: lockkeeper.CodeOverLock, false: lockkeeper.CodeInput}[strings.Contains(tc.want, "over-lock")]; lockkeeper.CodeOf(err) != want {
			t.Errorf("%s: code %v", name, lockkeeper.CodeOf(err))
		}
	}
}

func plan(target string) string {
	return `{"batches":[{"id":"b1","title":"","items":[],` + "\n" + ` "write_targets": ["` + target + `"]}]}`
}

// shows: PL-17
func TestCheckSynthesis(t *testing.T) {
	e := Extract{[]Possible{{Description: "a"}, {Description: "b"}, {Description: "c"}}}.Numbered()
	s := Synthesis{[]Ready{{ID: "i1"}}, []Dropped{{"i2", "done"}, {"i3", "done"}}}
	if err := CheckSynthesis(s, e); err != nil {
		t.Error(err)
	}
	s.Dropped[1].ID = "i9"
	err := CheckSynthesis(s, e)
	if err == nil || !strings.Contains(err.Error(), `"i9": no possible item has this id`) || !strings.Contains(err.Error(), `"i3": neither kept nor dropped`) {
		t.Error(err)
	}
	s.Dropped[1].ID = "i1"
	if err := CheckSynthesis(s, e); err == nil || !strings.Contains(err.Error(), "synthesis: dropped/1:") {
		t.Error(err)
	}
}

// shows: GP-23
func TestSlugs(t *testing.T) {
	a := Analysis{Topics: []Topic{{Prompt: "What pagination patterns do production Rails blog applications use, and why do they?"}, {Prompt: "???"}, {Prompt: "Caching!"}, {Prompt: "caching"}, {Prompt: "日本"}, {Prompt: "../../etc"}, {Prompt: strings.Repeat("x", 99)}}}
	want := "what-pagination-patterns-do-production-rails-blog topic caching caching-2 topic-2 etc topic-3"
	var got []string
	for _, topic := range a.Slugged().Topics {
		got = append(got, topic.Slug)
	}
	if strings.Join(got, " ") != want || a.Topics[0].Slug != "" {
		t.Errorf("%v", got)
	}
}

package view_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/surface/view"
)

// documents returns the folder of a unit's documents.
func (s *scene) documents(unit string) string {
	s.t.Helper()
	_, _, docs, err := conduct.OpenDocuments(s.app, "controllers")
	must(s.t, err)
	return docs.Unit(unit).Dir()
}

// age makes the files of a folder so old that the cache relies on their times.
func (s *scene) age(dir string) {
	s.t.Helper()
	old := time.Now().Add(-time.Hour)
	must(s.t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(path, old, old)
	}))
}

func (s *scene) row(unit string) view.BoardUnit {
	s.t.Helper()
	b, err := s.look.Board(s.t.Context(), "")
	must(s.t, err)
	at := slices.IndexFunc(b.Units, func(u view.BoardUnit) bool { return u.Name == unit })
	if at < 0 {
		s.t.Fatalf("%s is not on the board", unit)
	}
	return b.Units[at]
}

// A read after a change shows the change, both if the program wrote it and if a person
// edited the file in place.
func TestWhatWasChangedIsSeen(t *testing.T) {
	s := newScene(t, "")
	ctx := t.Context()
	book := s.audited("blog/posts", "Page them", "Cache them")
	for _, aged := range []bool{false, true} {
		if aged {
			s.age(s.documents("blog/posts"))
		}
		for range 3 {
			if row := s.row("blog/posts"); row.Open[progress.ItemKind] != 2 || row.Phase != "decide" {
				t.Fatalf("the row is %+v", row)
			}
		}
	}
	must(t, book.Decide(ctx, "blog/posts", "ada", progress.Choice{Item: "i1", Decision: flow.Todo}))
	if row := s.row("blog/posts"); row.Open[progress.ItemKind] != 1 {
		t.Errorf("after a decision the row is %+v", row)
	}
	must(t, book.Decide(ctx, "blog/posts", "ada", progress.Choice{Item: "i1", Was: flow.Todo}))
	if row := s.row("blog/posts"); row.Open[progress.ItemKind] != 2 {
		t.Errorf("after the withdrawal the row is %+v", row)
	}

	// Edit the file in place, without changing its size.
	file := filepath.Join(s.documents("blog/posts"), flow.AuditFile)
	text, err := os.ReadFile(file)
	must(t, err)
	s.age(s.documents("blog/posts"))
	s.row("blog/posts")
	broken := strings.Replace(string(text), `"items"`, `"itemz"`, 1)
	must(t, os.WriteFile(file, []byte(broken), 0o644))
	if row := s.row("blog/posts"); row.Phase != "audit" || len(row.Malformed) != 1 {
		t.Errorf("with a broken audit the row is %+v", row)
	}
	must(t, os.WriteFile(file, text, 0o644))
	if row := s.row("blog/posts"); row.Phase != "decide" || len(row.Malformed) != 0 {
		t.Errorf("with the audit repaired the row is %+v", row)
	}
	must(t, os.RemoveAll(s.documents("blog/posts")))
	if row := s.row("blog/posts"); row.Status != flow.Idle {
		t.Errorf("without documents the row is %+v", row)
	}
}

// Many changes within one tick of the disk's clock are all seen.
func TestChangesOfOneTickAreSeen(t *testing.T) {
	s := newScene(t, "")
	book := s.audited("blog/posts", "Page them", "Cache them")
	for i := range 40 {
		choice, open := progress.Choice{Item: "i1", Decision: flow.Defer}, 1
		if i%2 == 1 {
			choice, open = progress.Choice{Item: "i1", Was: flow.Defer}, 2
		}
		must(t, book.Decide(t.Context(), "blog/posts", "ada", choice))
		if row := s.row("blog/posts"); row.Open[progress.ItemKind] != open {
			t.Fatalf("change %d was not seen: %+v", i, row)
		}
	}
}

// One unit that cannot be read hides no other.
func TestAnUnreadableUnitHidesNoOther(t *testing.T) {
	s := newScene(t, "")
	s.audited("blog/posts", "Page them")
	s.controller("blog/users")
	must(t, os.Symlink(t.TempDir(), s.documents("blog/users"))) // a link, which is not followed
	s.controller("blog/tags")
	must(t, os.MkdirAll(filepath.Join(s.documents("blog/tags"), flow.AnalysisFile), 0o755)) // a directory instead of the file
	s.whole()
	if row := s.row("blog/posts"); row.Open[progress.ItemKind] != 1 {
		t.Errorf("the row is %+v", row)
	}
	b, err := s.look.Board(t.Context(), "")
	must(t, err)
	odd := 0
	for _, u := range b.Units {
		if u.Unread != "" || len(u.Malformed) > 0 {
			odd++
		}
	}
	if odd != 2 {
		t.Errorf("%d units are shown as odd: %+v", odd, b.Units)
	}
}

// One call whose record is damaged hides no other.
func TestADamagedCallHidesNoOther(t *testing.T) {
	s := fullScene(t)
	dir := filepath.Join(s.root, ".lockkeeper/calls/controllers%2Fblog%2Fposts%2Fsynthesize/1")
	must(t, os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "workspace"), nil, 0o600), os.WriteFile(filepath.Join(dir, "call.json"), []byte("{"), 0o600))
	s.whole()
	st, err := s.look.State(t.Context())
	must(t, err)
	if len(st.Problems) != 1 || st.Cost.USD != 1.25 {
		t.Errorf("the cost is %+v, the problems are %q", st.Cost, st.Problems)
	}
}

// Hostile names and texts are returned unchanged and break nothing.
func TestHostileNames(t *testing.T) {
	s := newScene(t, "")
	hostile := []string{`blog/<script>alert(1)</script>`, `blog/a&b "quoted"`, "blog/ümläut 名前", "blog/..%2F..%2Fetc", "blog/" + strings.Repeat("long", 40)}
	for _, name := range hostile {
		s.audited(name, `<img src=x onerror="alert(1)">`, "line\nbreak \x1b[31m")
	}
	s.whole()
	q, err := s.look.Decisions(t.Context(), "")
	must(t, err)
	if len(q.Open) != 2*len(hostile) || len(q.Clusters) != 2 {
		t.Errorf("%d gates and %d clusters", len(q.Open), len(q.Clusters))
	}
	for _, g := range q.Open {
		d, err := s.look.Decision(t.Context(), "", g.Ref)
		must(t, err)
		if !d.Waits || d.Item == nil || d.Version != g.Version {
			t.Errorf("%s: %+v", g.Ref, d)
		}
	}
	for _, name := range hostile {
		if row := s.row(name); row.Phase != "decide" {
			t.Errorf("%s is in %s", name, row.Phase)
		}
	}
}

// If discovery reports a problem, the board shows the problem and the units that were found.
func TestAProblemOfDiscoveryIsShown(t *testing.T) {
	s := newScene(t, "run: {discovery_glob: 'app/[/*.rb'}\n")
	book, _, _, err := conduct.OpenDocuments(s.app, "controllers")
	must(t, err)
	must(t, book.PutAnalysis(t.Context(), "blog/posts", flow.Analysis{Purpose: "p", Behaviour: "b", Screens: []flow.Served{}, Relations: []flow.Relation{}, Files: []string{}, Topics: []flow.Topic{}}, nil))
	b, err := s.look.Board(t.Context(), "")
	must(t, err)
	if len(b.Units) != 1 || len(b.Problems) != 1 {
		t.Errorf("the board is %+v", b)
	}
	s.whole()
}

// A board shows all of five hundred controllers.
func TestFiveHundredControllers(t *testing.T) {
	s := newScene(t, "")
	_, u := s.planned("area/page0", "Page them", "Cache them")
	const n = 500
	for i := 1; i < n; i++ {
		name := fmt.Sprint("area/page", i)
		s.controller(name)
		must(t, os.CopyFS(s.documents(name), os.DirFS(s.documents(u.Name))))
	}
	for range 2 {
		b, err := s.look.Board(t.Context(), "")
		must(t, err)
		if len(b.Units) != n || b.Statuses["applying"] != n || b.Run.Units != n {
			t.Fatalf("%d units, %v", len(b.Units), b.Statuses)
		}
	}
	if row := s.row("area/page499"); row.Phase != "apply" || len(row.Batches) != 2 || row.Batches[0].Mark != view.MarkWaiting {
		t.Errorf("a row is %+v", row)
	}
}

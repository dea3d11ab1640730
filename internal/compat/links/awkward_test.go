package links_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"lockkeeper/internal/compat/links"
)

var update = flag.Bool("update", false, "rewrite the golden report")

// unpack unpacks an archive into a new directory.
func unpack(t testing.TB, archive string) string {
	t.Helper()
	a, err := txtar.ParseFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, f := range a.Files {
		put(t, dir, f.Name, string(f.Data))
	}
	return dir
}

func put(t testing.TB, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// navigation returns the default documents.
func navigation() links.Options {
	return links.Options{Documents: []string{"README.md", "docs/INDEX.md"}, Optional: []string{"docs/BUILD_HISTORY.md"}, Exclude: []string{"node_modules"}}
}

func check(t testing.TB, dir string, o links.Options) *links.Report {
	t.Helper()
	rep, err := links.Check(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// transcript formats a report, broken references first.
func transcript(rep *links.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d documents, %d references, %d broken, %d informational\n\n", rep.Documents, rep.References, len(rep.Findings), len(rep.Informational))
	for _, f := range rep.Findings {
		fmt.Fprintf(&b, "%s:%d: %s %q: %s: %s", f.File, f.Line, f.Kind, f.Target, f.Problem, f.Reason)
		if f.Nearest != "" {
			fmt.Fprintf(&b, "; nearest %s", f.Nearest)
		}
		if f.Fix != nil {
			fmt.Fprintf(&b, "; fix %s", f.Fix.New)
		}
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	for _, f := range rep.Informational {
		fmt.Fprintf(&b, "info: %s:%d: %s %q: %s: %s\n", f.File, f.Line, f.Kind, f.Target, f.Problem, f.Reason)
	}
	b.WriteByte('\n')
	for _, r := range rep.Valid {
		fmt.Fprintf(&b, "%s:%d: %s %q\n", r.File, r.Line, r.Kind, r.Target)
	}
	if g := rep.Graph; g != nil {
		fmt.Fprintf(&b, "\norphans: %s\n", strings.Join(g.Orphans, " "))
		for _, c := range g.Cycles {
			fmt.Fprintf(&b, "cycle: %s of %s\n", strings.Join(c.Path, " → "), strings.Join(c.Documents, " "))
		}
	}
	return b.String()
}

// The report on difficult Markdown matches the golden file, which a person has reviewed.
//
// shows: LE-32 LE-33 LE-43 LE-46 GP-39
func TestAwkward(t *testing.T) {
	dir := unpack(t, filepath.Join("testdata", "awkward.txtar"))
	o := navigation()
	o.Deep, o.KeepValid, o.Lenient = true, true, []string{"archive"}
	got := transcript(check(t, dir, o))
	golden := filepath.Join("testdata", "awkward.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the report differs from the golden file:\n%s\nnext: review it, then run go test -run TestAwkward -update", got)
	}
	for range 5 { // whichever worker is faster
		if again := transcript(check(t, dir, o)); again != got {
			t.Fatalf("another report on the same tree:\n%s", again)
		}
	}
}

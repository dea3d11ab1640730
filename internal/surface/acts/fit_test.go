package acts_test

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockkeeper"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/rescue"
)

// Each kind of change is compared with its base, and nothing that another writer wrote since is shown as
// removed.
func TestFit(t *testing.T) {
	o := newOffice(t, 0)
	const path, base = "app/models/blog/fit.rb", "1\n2\n3\n4\n5\n"
	file := filepath.Join(o.app.Root.Dir(), path)
	must(t, os.MkdirAll(filepath.Dir(file), 0o755))
	was := lockkeeper.Version{Kind: lockkeeper.File, Mode: 0o644, Sum: sha256.Sum256([]byte(base))}
	for name, c := range map[string]struct {
		kept, now string // - is no file
		base      lockkeeper.Version
		state     string
		conflicts int
	}{
		"as it was":         {"1\n2\nkept\n3\n4\n5\n", base, was, acts.FitUnchanged, 0},
		"moved on":          {"kept\n" + base, base + "later\n", was, acts.FitClean, 0},
		"conflict":          {base + "kept\n", base + "later\n", was, acts.FitConflict, 1},
		"landed":            {"kept\n" + base, "kept\n" + base, was, acts.FitLanded, 0},
		"deleted since":     {"kept\n" + base, "-", was, acts.FitConflict, 0},
		"deletes":           {"-", base, was, acts.FitUnchanged, 0},
		"deletes and moved": {"-", base + "later\n", was, acts.FitConflict, 0},
		"deleted already":   {"-", "-", was, acts.FitLanded, 0},
		"creates":           {"kept\n", "-", lockkeeper.Version{}, acts.FitUnchanged, 0},
		"both create":       {"kept\n", "later\n", lockkeeper.Version{}, acts.FitConflict, 1},
		"binary":            {"a\x00b", base, was, acts.FitUnchanged, 0},
		"binary, moved on":  {"a\x00b", base + "later\n", was, acts.FitConflict, 0},
		"no base is known":  {"kept\n" + base, base + "later\n", lockkeeper.Version{Kind: lockkeeper.File, Mode: 0o644, Sum: [32]byte{1}}, acts.FitUnknown, 2},
	} {
		t.Run(name, func(t *testing.T) {
			must(t, os.WriteFile(file, []byte(base), 0o644)) // at the time of the change
			e := rescue.Entry{Kind: rescue.Gap, Path: path, Holder: "otter", Reason: "coverage: no lock", Base: c.base, Mode: 0o644, Delete: c.kept == "-"}
			e, err := o.app.Shelf().Put(t.Context(), e, strings.NewReader(c.kept))
			must(t, err)
			must(t, os.Remove(file))
			if c.now != "-" {
				must(t, os.WriteFile(file, []byte(c.now), 0o644))
			}
			fit, err := acts.FitOf(t.Context(), o.app, e)
			if err != nil || fit.State != c.state || len(fit.Conflicts) != c.conflicts {
				t.Errorf("%s with %d conflicts, %v: %s", fit.State, len(fit.Conflicts), err, fit)
			}
			for line := range strings.Lines(fit.Text) {
				if strings.HasPrefix(line, "-") && !strings.HasPrefix(line, "---") && strings.Contains(line, "later") && fit.State != acts.FitUnknown {
					t.Errorf("later work is shown as removed: %s", fit.Text)
				}
			}
			// What does not apply stays kept, and the file stays as it is.
			_, l, err := acts.LandRescued(t.Context(), o.app, e.ID, acts.Landing{}, acts.Changer{Actor: person("ann")}, acts.Holding(o.app, person("ann")))
			switch now, read := os.ReadFile(file); {
			case fit.State == acts.FitLanded && (err != nil || l != nil):
				t.Errorf("landed again: %v %v", l, err)
			case fit.Applies() && (err != nil || l == nil):
				t.Errorf("it did not land: %v", err)
			case fit.State == acts.FitClean && !strings.Contains(string(now), "later"):
				t.Errorf("later work is lost: %q", now)
			case !fit.Applies() && fit.State != acts.FitLanded && (lockkeeper.CodeOf(err) != lockkeeper.CodeViolation || (c.now != "-" && (read != nil || string(now) != c.now))):
				t.Errorf("%q, %v, %v", now, read, err)
			}
		})
	}
}

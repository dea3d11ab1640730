package acts_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/rescue"
)

// kept puts a change on the shelf.
func (o *office) kept(e rescue.Entry, content string) rescue.Entry {
	o.t.Helper()
	e.Holder, e.Reason = "otter", "coverage: no lock"
	e, err := o.app.Shelf().Put(o.t.Context(), e, strings.NewReader(content))
	must(o.t, err)
	return e
}

func (o *office) land(e rescue.Entry, how acts.Landing) (*lockkeeper.Landing, error) {
	_, l, err := acts.LandRescued(o.t.Context(), o.app, e.ID, how, acts.Changer{Actor: person("ann")}, acts.Holding(o.app, person("ann")))
	return l, err
}

func versionOf(content string, mode fs.FileMode) lockkeeper.Version {
	return lockkeeper.Version{Kind: lockkeeper.File, Mode: mode, Sum: sha256.Sum256([]byte(content))}
}

// Resolved content lands only in place of kept content, and never where the gate would not write.
func TestResolvedIsRefused(t *testing.T) {
	o := newOffice(t, 0)
	const now = "now\n"
	for name, c := range map[string]struct {
		path    string
		entry   rescue.Entry
		content string
		how     acts.Landing
	}{
		"no content given":         {"app/models/a.rb", rescue.Entry{Kind: rescue.Gap, Mode: 0o644, Base: versionOf("old\n", 0o644)}, "kept\n", acts.Landing{}},
		"outside of the allowlist": {"outside.txt", rescue.Entry{Kind: rescue.Uncommitted, Mode: 0o644}, "kept\n", acts.Landing{Resolved: new("other\n")}},
		"only permissions":         {"app/models/b.rb", rescue.Entry{Kind: rescue.Gap, Mode: 0o755, Base: versionOf(now, 0o644)}, "-", acts.Landing{Resolved: new("other\n")}},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(o.app.Root.Dir(), c.path)
			must(t, os.MkdirAll(filepath.Dir(file), 0o755))
			must(t, os.WriteFile(file, []byte(now), 0o644))
			c.entry.Path = c.path
			var e rescue.Entry
			if c.content == "-" {
				var err error
				c.entry.Holder, c.entry.Reason = "otter", "coverage: no lock"
				e, err = o.app.Shelf().Put(t.Context(), c.entry, nil)
				must(t, err)
			} else {
				e = o.kept(c.entry, c.content)
			}
			c.how.Base = fmt.Sprintf("%x", sha256.Sum256([]byte(now)))
			_, err := o.land(e, c.how)
			if got, _ := os.ReadFile(file); lockkeeper.CodeOf(err) != lockkeeper.CodeInput || string(got) != now {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// Permissions that a person set since are not lost.
func TestPermissionsAreMerged(t *testing.T) {
	o := newOffice(t, 0)
	const base = "1\n2\n3\n4\n5\n"
	file := filepath.Join(o.app.Root.Dir(), "app/models/mode.rb")
	for name, c := range map[string]struct {
		kept, now          string // - is no file
		was, mode, is, end fs.FileMode
		state              string
	}{
		"only the file's":       {"0\n" + base, base + "6\n", 0o644, 0o644, 0o755, 0o755, acts.FitClean},
		"only the change's":     {"0\n" + base, base + "6\n", 0o644, 0o755, 0o644, 0o755, acts.FitClean},
		"both, differently":     {"0\n" + base, base + "6\n", 0o644, 0o755, 0o600, 0o600, acts.FitConflict},
		"both, same content":    {base, base, 0o644, 0o755, 0o600, 0o600, acts.FitConflict},
		"both created it":       {base, base, 0, 0o644, 0o755, 0o755, acts.FitLanded},
		"content there already": {"0\n" + base, "0\n" + base, 0o644, 0o755, 0o644, 0o755, acts.FitClean},
	} {
		t.Run(name, func(t *testing.T) {
			_ = os.Remove(file)
			must(t, os.WriteFile(file, []byte(base), 0o644)) // at the time of the change
			e := rescue.Entry{Kind: rescue.Gap, Path: "app/models/mode.rb", Mode: c.mode}
			if c.was != 0 {
				e.Base = versionOf(base, c.was)
			}
			e = o.kept(e, c.kept)
			must(t, os.WriteFile(file, []byte(c.now), 0o644))
			must(t, os.Chmod(file, c.is))
			fit, err := acts.FitOf(t.Context(), o.app, e)
			if err != nil || fit.State != c.state {
				t.Errorf("%s, %v: %s", fit.State, err, fit)
			}
			_, err = o.land(e, acts.Landing{})
			info, _ := os.Stat(file)
			if (err != nil) != (c.state == acts.FitConflict) || info.Mode().Perm() != c.end {
				t.Errorf("mode %o, want %o: %v", info.Mode().Perm(), c.end, err)
			}
		})
	}
}

// A kept change through a link is not compared with a file outside of the root.
func TestFitStaysInTheRoot(t *testing.T) {
	o := newOffice(t, 0)
	out := t.TempDir()
	must(t, os.WriteFile(filepath.Join(out, "secret"), []byte("secret\n"), 0o600))
	must(t, os.Symlink(out, filepath.Join(o.app.Root.Dir(), "app/models/away")))
	up, err := filepath.Rel(o.app.Root.Dir(), filepath.Join(out, "secret"))
	must(t, err)
	for _, path := range []string{"app/models/away/secret", up, filepath.Join(out, "secret")} {
		e := o.kept(rescue.Entry{Kind: rescue.Gap, Path: path, Mode: 0o644}, "kept\n")
		fit, err := acts.FitOf(t.Context(), o.app, e)
		if err != nil || strings.Contains(fit.Text+fit.Merged+fmt.Sprint(fit.Conflicts), "secret\n") || fit.Now.Exists() {
			t.Errorf("%s: %+v, %v", path, fit, err)
		}
	}
}

// A file that was deleted since is not created again if the content that the change was based on is lost.
func TestDeletedSinceWithoutBase(t *testing.T) {
	o := newOffice(t, 0)
	e := o.kept(rescue.Entry{Kind: rescue.Gap, Path: "app/models/gone.rb", Mode: 0o644, Base: lockkeeper.Version{Kind: lockkeeper.File, Mode: 0o644, Sum: [32]byte{1}}}, "kept\n")
	if fit, err := acts.FitOf(t.Context(), o.app, e); err != nil || fit.State != acts.FitConflict {
		t.Errorf("%s, %v", fit.State, err)
	}
}

// Conditions of an agent choose only its own changes, and the answer tells it nothing about those of others.
func TestAgentsLandTheirOwn(t *testing.T) {
	o := newOffice(t, 0)
	var list []rescue.Entry
	for name, by := range map[string]string{"mine": "badger", "theirs": "otter"} {
		e, err := o.app.Shelf().Put(t.Context(), rescue.Entry{Kind: rescue.Gap, Path: "app/models/" + name + ".rb", Holder: by, Mode: 0o644, Reason: "coverage: no lock"}, strings.NewReader(name))
		must(t, err)
		list = append(list, e)
	}
	by := acts.Changer{Actor: lockkeeper.Actor{Name: "badger", Kind: lockkeeper.ActorAgent}, Wrote: func(_ context.Context, _, holder string, _ time.Time) (bool, error) { return holder == "badger", nil }}
	own, err := by.Own(t.Context(), list)
	if err != nil || len(own) != 1 || own[0].Holder != "badger" {
		t.Errorf("%+v, %v", own, err)
	}
	if own, err := (acts.Changer{Actor: person("ann")}).Own(t.Context(), list); err != nil || len(own) != 2 {
		t.Errorf("%+v, %v", own, err)
	}
	done := acts.LandMany(t.Context(), o.app, list, by, acts.Holding(o.app, by.Actor))
	if len(done.Landed) != 1 || len(done.Kept) != 1 || !strings.Contains(done.Kept[0].Reason, "agents change only what they wrote") {
		t.Errorf("%+v", done)
	}
}

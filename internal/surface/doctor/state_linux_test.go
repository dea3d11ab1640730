package doctor_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockkeeper/internal/surface/doctor"
	"lockkeeper/internal/surface/view"
)

// The doctor reports a machine that does not work, with the location and the next step. A protection that could
// not be tried is not reported as enforced.
func TestStatesAreTold(t *testing.T) {
	replaced := func(d *workbench, name string) { // replaces a directory by a file
		at := filepath.Join(d.settings.Dir, name)
		if err := os.RemoveAll(at); err != nil {
			d.t.Fatal(err)
		}
		d.write(at, "", 0o644)
	}
	for name, test := range map[string]struct {
		harm     func(*workbench)
		check    string
		says     string
		enforced bool
		ok       bool
	}{
		"no shelf": {func(d *workbench) { replaced(d, ".lockkeeper/rescue") }, "shelf", ".lockkeeper/rescue is not writable", true, false},
		"no store": {func(d *workbench) {
			state, _ := d.settings.Env("XDG_STATE_HOME")
			if err := os.RemoveAll(filepath.Join(state, "lockkeeper")); err != nil {
				d.t.Fatal(err)
			}
			d.write(filepath.Join(state, "lockkeeper"), "", 0o644)
		}, "store", "lockkeeper", false, false},
		"two in PATH": {func(d *workbench) {
			other := d.t.TempDir()
			d.write(filepath.Join(other, "lockkeeper"), "#!/bin/sh\n", 0o755)
			d.path = ":" + other
		}, "versions", "several in PATH, and the first is used: ", true, true},
		"no git-lfs": {func(d *workbench) {
			d.write(filepath.Join(d.settings.Dir, ".gitattributes"), "*.bin filter=lfs diff=lfs merge=lfs -text\n", 0o644)
			d.path = "-"
		}, "versions", "git-lfs is not in PATH", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			d := enrolled(t, "claude")
			test.harm(d)
			ways, r := d.said("claude")
			if got := ways[0].Level == view.Enforced; got != test.enforced || r.OK != test.ok || strings.Contains(r.Summary, view.Enforced) != test.enforced {
				t.Errorf("%s: %+v", r.Summary, ways)
			}
			told(t, r, test.check, test.says)
		})
	}
}

// told checks that a check failed with this text, and that it has a next step.
func told(t *testing.T, r *doctor.Report, check, says string) {
	t.Helper()
	for _, c := range r.Checks {
		if c.Name == check && !c.OK && strings.Contains(c.Fact, says) && c.Next != "" {
			return
		}
	}
	t.Errorf("%s does not say %q: %+v", check, says, r.Checks)
}

// The doctor reports that lockkeeper or git is not found.
func TestProgramsThatAreMissing(t *testing.T) {
	s := settings(t, nil)
	t.Setenv("PATH", t.TempDir())
	r, err := doctor.Examine(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	told(t, r, "versions", "cannot run git")
	told(t, r, "versions", "lockkeeper is not in PATH")
}

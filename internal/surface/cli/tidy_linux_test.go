package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tidy reports files that the gate may not move, with the setting that allows it, also in a dry
// run. It refuses an unknown phase before it reports anything.
func TestTidySaysHowToAllowIt(t *testing.T) {
	d := newConsole(t)
	d.env = append(d.env, "NO_COLOR=1", "ALLOWED_WRITE_PATHS=app")
	if err := os.WriteFile(filepath.Join(d.dir, "build.log"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for code, args := range map[int][]string{0: {"tidy"}, 1: {"tidy", "--execute"}} {
		d.forget()
		d.must(code, args...)
		d.sees("next: ask a person to add its directory to gate.allowed_write_paths in lockkeeper.yaml")
	}
	if out := d.must(2, "tidy", "--phase", "rot"); strings.Contains(out, "Lease acquired") {
		t.Errorf("answered %q", out)
	}
}

//go:build mutate

package lockkeeper_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Each mutant removes the implementation of a requirement, and the test that it names must
// fail. The changed file exists only in an overlay: the work tree stays as it is.
func TestMutants(t *testing.T) {
	list, err := readMutants(readText(t, mutants))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list {
		t.Run(m.id, func(t *testing.T) {
			began := time.Now()
			out, err := m.test(t)
			switch {
			case err == nil:
				t.Errorf("%s: %s: %s passes although %s; next: make the test fail", m.place, m.pkg(), m.run, m.what)
			case !strings.Contains(out, "--- FAIL") && !strings.Contains(out, "panic: ") && !strings.Contains(out, "fatal error: "):
				t.Errorf("%s: the test did not run: %v\n%s", m.place, err, out)
			default:
				t.Logf("%s %s fails as it must, after %s", m.pkg(), m.run, time.Since(began).Round(time.Second))
			}
		})
	}
}

// test runs the test of a mutant and returns its output and how it ended.
func (m mutant) test(t *testing.T) (string, error) {
	changed, err := m.apply()
	if err != nil {
		t.Fatalf("%s: %v", m.place, err)
	}
	dir := t.TempDir()
	source, err := filepath.Abs(m.file)
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {source: filepath.Join(dir, "mutant")}})
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir, "mutant", changed)
	writeFile(t, dir, "overlay.json", string(overlay))
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-vet=off", "-timeout=2m", "-overlay="+filepath.Join(dir, "overlay.json"), "-run="+m.run, m.pkg())
	cmd.Env = append(os.Environ(), "GOFLAGS=") // a flag for the outer run must not select another test
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// pkg returns the package of the test, for go test.
func (m mutant) pkg() string { return "./" + path.Clean(m.dir) }

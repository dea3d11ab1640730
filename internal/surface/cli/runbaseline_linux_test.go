package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// In a terminal a person decides whether a run continues although the tests fail on the unchanged tree.
// --yes continues without a question.
//
// shows: PL-28
func TestRunAsksWhenTheTestsFailBefore(t *testing.T) {
	d := newConsole(t)
	d.env = append(d.env, "PATH="+os.Getenv("PATH"))
	for name, text := range map[string]string{
		"plan.yaml":       "tests: [\"echo broken; false\"]\ntasks: [{name: one, prompt: Do it., writes: [app/one.txt]}]\n",
		"agent.sh":        "case $(cat) in \"# task \"*) echo new > app/one.txt; echo '{\"summary\": \"made it\"}';; *) echo '{\"verdict\": \"pass\", \"report\": \"fine\", \"issues\": []}';; esac\n",
		"lockkeeper.yaml": "agent:\n  name: command\n  command: [sh, agent.sh]\ngate:\n  allowed_write_paths: [app]\n",
	} {
		if err := os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(d.dir, "app"), 0o755); err != nil {
		t.Fatal(err)
	}
	run := []string{"run", "--plan", "plan.yaml", "--no-ui"}
	out := d.agreeing("n", 1, run...)
	for _, want := range []string{"the tests fail here after", "| broken", "stopping: the tests fail on the unchanged tree", "0 of 1 task complete", "0 calls"} {
		if !strings.Contains(out, want) {
			t.Errorf("the run did not say %q:\n%s", want, out)
		}
	}
	out = d.must(0, append(run, "--yes")...)
	if !strings.Contains(out, "1 of 1 task complete") || !strings.Contains(out, "its tests fail as before the run") {
		t.Errorf("with --yes:\n%s", out)
	}
}

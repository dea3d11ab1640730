package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"lockkeeper/internal/surface/view"
)

// For a host that runs hooks only after a person trusts them, the report of a session proves that trust. Then
// the doctor tries a forbidden write, too.
//
// shows: GP-5
func TestDoctorBelievesReports(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, agent := range []string{"codex", "gemini"} {
		t.Run(agent, func(t *testing.T) {
			d := newHouse(t, agent)
			d.must(0, "init", agent, "--yes")
			input, err := json.Marshal(map[string]string{"session_id": "s", "cwd": d.dir, "hook_event_name": "SessionStart"})
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(self)
			cmd.Args = []string{"lockkeeper", "hook", agent}
			cmd.Dir, cmd.Env, cmd.Stdin = d.dir, d.env, bytes.NewReader(input)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v %s", err, out)
			}
			if w := way(t, d.examine(0), agent); w.Level != view.Enforced || w.Broken || !strings.Contains(w.Fact, "a forbidden write was tried and refused") {
				t.Errorf("%+v", w)
			}
		})
	}
}

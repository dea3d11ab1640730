package flow

import (
	"encoding/json"
	"testing"
)

// Results of earlier versions are read correctly: skipped checks have not passed.
func TestCheckedOfEarlierVersions(t *testing.T) {
	for text, want := range map[string]CheckState{
		`{"passed": true, "skipped": "no test_command is configured", "runs": []}`:         CheckSkipped,
		`{"passed": true, "runs": [{"command": "x"}]}`:                                     CheckPassed,
		`{"passed": false, "runs": []}`:                                                    CheckFailed,
		`{"state": "skipped", "passed": false, "skipped": "none", "runs": []}`:             CheckSkipped,
		`{"state": "passed", "passed": true, "runs": []}`:                                  CheckPassed,
		`{"state": "failed", "passed": true, "runs": []}`:                                  CheckFailed,
		`{"state": "passed", "passed": true, "skipped": "an earlier version", "runs": []}`: CheckSkipped,
	} {
		var c Checked
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			t.Fatal(err)
		}
		if c.State != want || c.Passed != (want == CheckPassed) || c.Cleared() != (want != CheckFailed) {
			t.Errorf("%s: %+v", text, c)
		}
	}
	if (*Checked)(nil).Cleared() {
		t.Error("checks that did not run are cleared")
	}
}

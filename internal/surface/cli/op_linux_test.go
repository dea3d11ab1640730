package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A destructive operation needs a person to type the project's name, and records who did. An
// agent at the same terminal is refused.
//
// shows: DL-26 DL-88 CF-14 CF-46
func TestApprovalIsTyped(t *testing.T) {
	for name, c := range map[string]struct {
		answer string // empty: no question
		code   int
		shown  string
		ran    bool
	}{
		"agreed":  {answer: "project/p1", code: 0, shown: "write project/p1 and all below it", ran: true},
		"refused": {answer: "yes", code: 1, shown: "not confirmed; nothing changed"},
		"agent":   {code: 1, shown: "only a person may do it"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newConsole(t)
			d.must(0, "init", "fole")
			ran := filepath.Join(d.dir, "ran")
			command := []string{"op", "delete-project", "--project", "p1", "--approve", "--", "/bin/sh", "-c", ": >" + ran}
			if c.answer == "" {
				d.env = append(d.env, "CLAUDECODE=1")
				d.must(c.code, command...)
			} else {
				d.answering(c.answer, c.code, command...)
			}
			d.sees(c.shown)
			if _, err := os.Stat(ran); (err == nil) != c.ran {
				t.Errorf("ran: %v", err)
			}
			d.must(0, "lock", "check", "--write", "project/p1")
			audit := d.must(0, "audit", "--json")
			if strings.Contains(audit, `"path":"project/p1"`) != c.ran || c.ran != strings.Contains(audit, "approved delete-project on project/p1") || c.ran && !strings.Contains(audit, `"actor":{"name":"ada`) {
				t.Errorf("recorded:\n%s", audit)
			}
		})
	}
}

package agent

import (
	"strings"
	"testing"
)

// The error for a command without a program says where to configure it. The error of a
// failed call names the command that retries it.
func TestAdviceNamesWhatWorks(t *testing.T) {
	_, err := ByName("command")
	if err == nil || !strings.Contains(err.Error(), "agent.command of lockkeeper.yaml") {
		t.Errorf("a command without a program: %v", err)
	}
	for _, session := range []string{"", "some-session"} {
		if advice := (Origin{Session: session}).retry(); !strings.HasPrefix(advice, "lockkeeper run --retry") {
			t.Errorf("after a failed call of session %q: %s", session, advice)
		}
	}
}

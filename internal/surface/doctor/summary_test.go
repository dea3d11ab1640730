package doctor

import (
	"testing"

	"lockkeeper/internal/agent/enrol"
	"lockkeeper/internal/surface/view"
)

// The last line summarizes how each agent is enforced, and which sessions need a restart.
func TestSummary(t *testing.T) {
	x := &examination{report: &Report{
		Protections: []view.Protection{{Writer: "everybody", Level: view.Enforced}, {Writer: "claude", Level: view.Enforced, OfTools: true}, {Writer: "claude", Level: view.Detected},
			{Writer: "codex", Level: view.Advisory, OfTools: true}},
		Silent: []RunningAgent{{"claude", 1, "pts/5"}, {"claude", 2, "pts/7"}}}}
	for _, h := range enrol.Hosts() {
		x.hosts = append(x.hosts, enrol.Status{Host: h})
	}
	const want = "enforced: claude (hook) · advisory: codex · 2 running claude processes have not reported: restart pts/5, pts/7"
	if got := x.summary(); got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
}

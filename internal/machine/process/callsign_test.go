package process

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestCallsigns(t *testing.T) {
	words := strings.Fields(animals)
	if len(words) < 200 || !slices.IsSorted(words) || len(slices.Compact(slices.Clone(words))) != len(words) {
		t.Errorf("%d words, sorted and distinct: %t", len(words), slices.IsSorted(words))
	}
	shape := regexp.MustCompile(`^[a-z]+(-[1-9][0-9]?)?$`)
	seen := map[string]bool{}
	for i := range 1000 {
		seed := fmt.Sprint("pts/", i)
		name := Callsign(seed)
		if name != Callsign(seed) || !shape.MatchString(name) {
			t.Fatalf("callsign %q of %q", name, seed)
		}
		seen[name] = true
	}
	if len(seen) < 900 {
		t.Errorf("only %d names for 1000 terminals", len(seen))
	}
}

func TestHolderIsStable(t *testing.T) {
	a, err := Holder()
	if err != nil || a == "" {
		t.Fatalf("%q, %v", a, err)
	}
	if b, _ := Holder(); a != b {
		t.Errorf("%q, then %q", a, b)
	}
}

func TestAgentEnvironment(t *testing.T) {
	for entry, want := range map[string]string{
		"CLAUDECODE=1":                     "claude",
		"CLAUDE_CODE_ENTRYPOINT=cli":       "claude",
		"CODEX_SANDBOX=seatbelt":           "codex",
		"CODEX_SANDBOX_NETWORK_DISABLED=1": "codex",
		"CODEX_THREAD_ID=x":                "codex",
		"GEMINI_CLI=1":                     "gemini",
		"CURSOR_AGENT=1":                   "cursor",
		"CURSOR_TRACE_ID=abc":              "cursor",
		"OPENCODE=1":                       "opencode",
		"AIDER_MODEL=x":                    "aider",
		"LOCKKEEPER_GRANT=g":               "lockkeeper",
		"AI_AGENT=amp@2":                   "amp@2",
		"AGENT=1":                          "agent",
		"AGENT=true":                       "agent",
		"AGENT=\x1b[2J":                    "agent",
		"CLAUDECODE=":                      "",
		"CLAUDECODE=0":                     "",
		"CODEX_HOME=/home/x":               "",
		"LOCKKEEPER_GRANTS=x":              "",
		"USER_AGENT=x":                     "",
		"malformed":                        "",
	} {
		name, inside := AgentEnvironment([]string{"PATH=/bin", entry})
		if name != want || inside != (want != "") {
			t.Errorf("%q: %q, %t; want %q", entry, name, inside, want)
		}
	}
}

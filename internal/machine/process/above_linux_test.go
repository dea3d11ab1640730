package process

import (
	"os"
	"testing"
)

// A coding agent is recognized by its program, even if an interpreter runs it.
func TestAgentOf(t *testing.T) {
	for want, list := range map[string][][]string{
		"claude": {{"claude"}, {"MainThread", "/opt/bin/claude", "-p", "x"}, {"node", "node", "--no-warnings", "/usr/bin/claude"}, {"sh", "/bin/sh", "/usr/local/bin/claude"}},
		"codex":  {{"x", "codex"}, {"node", "/usr/bin/env", "node", "/lib/codex.js"}},
		"gemini": {{"node", "node", "/usr/bin/gemini"}},
		"":       {{"bash", "bash", "-l"}, {"vim", "vim", "claude"}, {"claudette"}, {"x"}, {"grep", "grep", "-r", "codex", "gemini"}},
	} {
		for _, p := range list {
			if got := agentOf(p[0], p[1:]); got != want {
				t.Errorf("%q: %q, want %q", p, got, want)
			}
		}
	}
}

// The nearest process above is the parent.
func TestAbove(t *testing.T) {
	list := Above()
	if len(list) == 0 || list[0].PID != os.Getppid() {
		t.Errorf("%+v", list)
	}
}

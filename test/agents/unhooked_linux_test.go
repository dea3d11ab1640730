//go:build agents

package agents_test

import (
	"path/filepath"
	"strings"
	"testing"

	"lockkeeper/internal/agent"
	"lockkeeper/internal/agent/scriptedapi"
)

// The real Claude Code runs no hooks with some options, variables and settings. The status then
// lists it as unchecked, and says why.
//
// shows: GP-5
func TestClaudeWithoutHooks(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args, env []string
		why       string
	}{
		"bare":        {args: []string{"--bare"}, why: "--bare"},
		"safe mode":   {args: []string{"--safe-mode"}, why: "--safe-mode"},
		"no settings": {args: []string{"--setting-sources", "local"}, why: "--setting-sources local"},
		"settings":    {args: []string{"--settings", `{"disableAllHooks":true}`}, why: "--settings with disableAllHooks"},
		"simple":      {env: []string{"CLAUDE_CODE_SIMPLE=1"}, why: "CLAUDE_CODE_SIMPLE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := enrolled(t, "claude", claudeProgram(t), play(use(scriptedapi.Bash("lockkeeper status; echo mine > app/posts.rb")), scriptedapi.Step{Text: "Done."}))
			r := h.request("Change the posts")
			r.Env = append(append(h.environment(), "PATH="+filepath.Dir(h.binary)+":/usr/bin:/bin"), test.env...)
			h.plays(t, agent.Claude{Argv: append([]string{h.program}, test.args...)}, r, "Done.")
			h.unchecked(t, test.why)
		})
	}
}

// So does the real opencode.
func TestOpencodeWithoutHooks(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args, env []string
		why       string
	}{
		"pure":              {args: []string{"--pure"}, why: "--pure"},
		"pure by variable":  {env: []string{"OPENCODE_PURE=1"}, why: "OPENCODE_PURE"},
		"no project config": {env: []string{"OPENCODE_DISABLE_PROJECT_CONFIG=true"}, why: "OPENCODE_DISABLE_PROJECT_CONFIG"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := enrolled(t, "opencode", programOf(t, opencodeVariable), play(use(shellOf("lockkeeper status; echo mine > app/posts.rb")), scriptedapi.Step{Text: "Done."}))
			_, r := h.opencode(t, "Change the posts", nil)
			r.Env = append(r.Env, test.env...)
			h.plays(t, agent.Plain{Argv: append([]string{h.program, "run", "--auto", "--title=test"}, test.args...)}, r, "Done.")
			h.unchecked(t, test.why)
		})
	}
}

// unchecked checks that a session wrote the posts, and that the status which it asked for lists it as
// unchecked and says why.
func (h *hooked) unchecked(t *testing.T, why string) {
	t.Helper()
	if got := read(t, filepath.Join(h.dir, posts)); got != "mine\n" {
		t.Errorf("it holds %q: its hooks are run by now, which docs/hooks.md and the status have to say", got)
	}
	list := h.api.Requests()
	said := strings.Join(list[len(list)-1].Results, "\n")
	if !strings.Contains(said, "unchecked: "+filepath.Base(h.program)+", process ") || !strings.Contains(said, "started with "+why) {
		t.Errorf("the status says %q", said)
	}
}

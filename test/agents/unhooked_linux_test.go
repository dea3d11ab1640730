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
			if got := read(t, filepath.Join(h.dir, posts)); got != "mine\n" {
				t.Errorf("it holds %q: its hooks are run by now, which docs/hooks.md and the status have to say", got)
			}
			list := h.api.Requests()
			if said := list[len(list)-1].Results; !strings.Contains(strings.Join(said, "\n"), "unchecked: claude, process ") || !strings.Contains(strings.Join(said, "\n"), "started with "+test.why) {
				t.Errorf("the status says %q", said)
			}
		})
	}
}
